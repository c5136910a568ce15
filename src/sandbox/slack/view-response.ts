/** What the acknowledgement of a view_submission does to the stack of forms. */
import { ApiError } from "./app-post.js";
import { isObject } from "./blocks/check.js";
import type { SandboxContext } from "./context.js";
import type { View } from "./model.js";
import { clearStack, dropView, findView, pushModal, readView, setErrors, updateView } from "./views.js";

export type SubmissionOutcome =
  | { kind: "done" }
  | { kind: "errors"; errors: Record<string, string> }
  /** The form stays open and says that something went wrong. */
  | { kind: "unusable"; why: string };

/** Empty closes the form; `response_action` does as it says; anything else cannot be used. */
export function applySubmission(ctx: SandboxContext, view: View, body: unknown): SubmissionOutcome {
  if (body === "" || body === null || (isObject(body) && Object.keys(body).length === 0)) {
    dropView(ctx, view);
    return { kind: "done" };
  }
  if (!isObject(body)) return { kind: "unusable", why: "not a JSON object" };
  try {
    return act(ctx, view, body);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { kind: "unusable", why: `${error.code} ${JSON.stringify(error.extra)}` };
  }
}

function act(ctx: SandboxContext, view: View, body: Record<string, unknown>): SubmissionOutcome {
  switch (body["response_action"]) {
    case "clear":
      clearStack(ctx, view.owner);
      return { kind: "done" };
    case "errors":
      return showErrors(ctx, view, body["errors"]);
    case "update":
      updateView(ctx, view, readView(body["view"]), undefined);
      return { kind: "done" };
    case "push":
      if (findView(ctx, view.id)) pushModal(ctx, view.owner, readView(body["view"]));
      return { kind: "done" };
    default:
      return { kind: "unusable", why: `response_action ${JSON.stringify(body["response_action"])}` };
  }
}

/** Errors are keyed by the block id of an input in the view. */
function showErrors(ctx: SandboxContext, view: View, given: unknown): SubmissionOutcome {
  if (!isObject(given) || Object.keys(given).length === 0)
    return { kind: "unusable", why: "no errors given" };
  const inputs = new Set(view.blocks.filter((b) => b.type === "input").map((b) => b.block_id));
  const strangers = Object.keys(given).filter((id) => !inputs.has(id));
  if (strangers.length > 0) {
    return { kind: "unusable", why: `errors for blocks that are no inputs: ${strangers.join(", ")}` };
  }
  const errors = Object.fromEntries(Object.entries(given).map(([id, text]) => [id, String(text)]));
  setErrors(ctx, view, errors);
  return { kind: "errors", errors };
}
