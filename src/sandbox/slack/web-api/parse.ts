/** Reads a Web API call off the wire: form or JSON body, query, token, and arguments in their types. */
import type { IncomingMessage } from "node:http";
import { isObject } from "../blocks/check.js";
import type { Json, JsonObject } from "../model.js";
import type { ArgType } from "./method.js";

/** Bodies above this are refused. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

export async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > MAX_BODY_BYTES) throw new Error("body too large");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export interface RawCall {
  args: JsonObject;
  /** Token of the Authorization header. */
  headerToken: string | undefined;
  /** Token among the arguments. */
  argToken: string | undefined;
  /** What Slack remarks on the charset of the content type. */
  warning: "missing_charset" | "superfluous_charset" | null;
  error: "invalid_form_data" | "invalid_json" | "json_not_object" | "invalid_post_type" | null;
}

/** Never throws for what the caller sent: problems are Slack's error codes in `error`. */
export function parseCall(req: IncomingMessage, url: URL, body: string): RawCall {
  const out: RawCall = { args: {}, headerToken: undefined, argToken: undefined, warning: null, error: null };
  for (const [name, value] of url.searchParams) out.args[name] = value;
  const [type = "", ...parameters] = (req.headers["content-type"] ?? "").split(";").map((s) => s.trim());
  const charset = parameters.some((p) => p.toLowerCase().startsWith("charset="));
  if (type === "application/json") {
    if (!charset) out.warning = "missing_charset";
    readJson(body, out);
  } else if (type === "application/x-www-form-urlencoded") {
    if (charset) out.warning = "superfluous_charset";
    for (const [name, value] of new URLSearchParams(body)) out.args[name] = value;
  } else if (body !== "") out.error = "invalid_post_type";
  const bearer = /^Bearer\s+(\S+)$/iu.exec(req.headers.authorization ?? "");
  out.headerToken = bearer?.[1];
  if (typeof out.args["token"] === "string") out.argToken = out.args["token"];
  delete out.args["token"];
  return out;
}

function readJson(body: string, out: RawCall): void {
  if (body === "") return;
  try {
    const parsed: unknown = JSON.parse(body);
    if (isObject(parsed)) Object.assign(out.args, parsed);
    else out.error = "json_not_object";
  } catch {
    out.error = "invalid_json";
  }
}

/** Arguments in their types, or the name of the first that cannot be read. Nulls count as absent. */
export function typedArgs(
  raw: JsonObject,
  types: Record<string, ArgType>,
): { args: JsonObject; unreadable: string | null; unknown: string[] } {
  const args: JsonObject = {};
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(raw)) {
    if (value === null || name === "team_id") continue;
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) {
      unknown.push(name);
      continue;
    }
    const read = readArg(value, type);
    if (read === undefined) return { args, unreadable: name, unknown };
    args[name] = read;
  }
  return { args, unreadable: null, unknown };
}

function readArg(value: Json, type: ArgType): Json | undefined {
  switch (type) {
    case "string":
      if (typeof value === "string") return value;
      return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
    case "bool":
      if (typeof value === "boolean") return value;
      if (value === "true" || value === "1" || value === 1) return true;
      return value === "false" || value === "0" || value === "" || value === 0 ? false : undefined;
    case "int": {
      const number = typeof value === "number" ? value : Number(value);
      return Number.isInteger(number) ? number : undefined;
    }
    case "json":
      if (typeof value !== "string") return value;
      try {
        return JSON.parse(value) as Json;
      } catch {
        return undefined;
      }
  }
}
