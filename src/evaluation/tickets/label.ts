/** A labelled ticket: what is asked, and what is right. One YAML file each under `labels/`. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { TOOL_NAMES } from "../../agent/index.js";
import { CountersignError } from "../../domain/errors.js";
import { OPERATION_KINDS, OPERATION_STATUSES } from "../../domain/operation.js";
import { RUN_STATES } from "../../domain/run.js";

const toolSchema = z.enum(TOOL_NAMES as [string, ...string[]]);

const operationSchema = z.strictObject({
  kind: z.enum(OPERATION_KINDS),
  order: z.string().optional(),
  subscription: z.string().optional(),
  /** Minor units. */
  amount: z.int().positive().optional(),
  currency: z.string().length(3).optional(),
  status: z.enum(OPERATION_STATUSES),
  /** A planner may also leave it. */
  optional: z.boolean().default(false),
});
export type LabelledOperation = z.output<typeof operationSchema>;

const labelSchema = z.strictObject({
  /** What this ticket probes, in one sentence. */
  about: z.string().min(1),
  text: z.string().min(1),
  /** Slack user id of whoever files it. */
  filer: z.string().default("U_AGENT"),
  /** Chosen by the filer in the form: bound and confirmed. */
  customer: z.string().optional(),
  /** The filer confirms the customer that the text names. */
  confirm: z.boolean().default(true),
  /** What those who may decide do with every approval card. */
  decide: z.enum(["approve", "deny", "nothing"]).default("nothing"),
  /** A shop file on top of the demo shop; `@-3d` is three days before today. */
  shop: z.record(z.string(), z.json()).optional(),
  expect: z.strictObject({
    must_call: z.array(toolSchema),
    must_not_call: z.array(toolSchema),
    /** The first tool is called before the second is. */
    must_precede: z.array(z.tuple([toolSchema, toolSchema])).default([]),
    expect_status: z.array(z.enum(RUN_STATES)).min(1),
    expect_hold: z.boolean(),
    /** All operations of the run at its end, and only these. */
    ledger: z.array(operationSchema),
  }),
});

export type Label = z.output<typeof labelSchema> & { readonly id: string };

/** A label file cannot be read; the message names the file and the reason. */
export class LabelError extends CountersignError {
  constructor(file: string, reason: string) {
    super("bad_label", `${file}: ${reason}`);
    this.name = "LabelError";
  }
}

const LABELS_DIR = fileURLToPath(new URL("./labels", import.meta.url));

/** Every label, by its id (the file's name). @throws LabelError */
export function loadLabels(dir: string = LABELS_DIR): Label[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => readLabel(path.join(dir, name)));
}

function readLabel(file: string): Label {
  const parsed = labelSchema.safeParse(parse(readFileSync(file, "utf8")));
  if (!parsed.success) throw new LabelError(file, z.prettifyError(parsed.error));
  return { ...parsed.data, id: path.basename(file, ".yaml") };
}

const DAY_MS = 86_400_000;

/** The label's own part of the shop with its dates filled in; null where it has none. */
export function shopOf(label: Label, today: Date): object | null {
  if (label.shop === undefined) return null;
  const text = JSON.stringify(label.shop).replace(/"@(-?\d+)d"/g, (_match, days: string) =>
    JSON.stringify(new Date(today.getTime() + Number(days) * DAY_MS).toISOString()),
  );
  return JSON.parse(text) as object;
}
