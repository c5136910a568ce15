/** Calls to the sandbox. Refusals become toasts here, so that no press of a button ends in silence. */
/** @import { ActResult } from "../slack/control-types.js" */
import { obj, str } from "./json.js";
import { store } from "./store.js";
import { toast } from "./ui/toasts.js";

/** @param {string} path below `/sandbox/` @returns {Promise<unknown>} Rejects with a sentence. */
export async function get(path) {
  const response = await fetch(`/sandbox/${path}`, { headers: { accept: "application/json" } });
  return answer(response);
}

/** @param {string} path @param {unknown} body @param {"POST" | "DELETE"} [method] @returns {Promise<unknown>} */
export async function send(path, body, method = "POST") {
  const response = await fetch(`/sandbox/${path}`, {
    method,
    headers: { "content-type": "application/json" },
    ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
  });
  return answer(response);
}

export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {Response} response @returns {Promise<unknown>} */
async function answer(response) {
  /** @type {unknown} */
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  const { message, error } = obj(body);
  throw new Refused(
    response.status,
    str(message) || str(error) || `The sandbox answered ${response.status}.`,
  );
}

/**
 * Acts as the person who looks. What was refused is told, unless the caller shows it in its own place.
 * @param {string} what
 * @param {Record<string, unknown>} body
 * @param {{ quiet?: string[] }} [options] codes that the caller shows itself
 * @returns {Promise<ActResult<Record<string, unknown>>>}
 */
export async function act(what, body, options = {}) {
  try {
    const result = /** @type {ActResult<Record<string, unknown>>} */ (
      await send(`act/${what}`, { as: store.as, ...body })
    );
    if (!result.ok && !(options.quiet ?? []).includes(result.error)) {
      toast(result.message, { kind: "error", code: result.error });
    }
    return result;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const shown = error instanceof TypeError ? "The sandbox does not answer. Is it still running?" : message;
    toast(shown, { kind: "error" });
    return { ok: false, error: "invalid_request", message: shown };
  }
}
