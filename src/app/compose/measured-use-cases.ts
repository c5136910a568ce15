/** The use cases of Slack's listeners, with every answer counted that refused a person for want of authority. */
import type { OpsUseCases } from "../../ops/index.js";
import type { SlackUseCases } from "../../slack/index.js";

type Forbidden = (what: string) => void;
type Answer = { readonly outcome: string };

export function measuredUseCases(cases: SlackUseCases, forbidden: Forbidden): SlackUseCases {
  const counted = counter(forbidden);
  return {
    ...cases,
    decide: counted("click", cases.decide),
    lookBeforeDeny: counted("click", cases.lookBeforeDeny),
    undo: counted("click", cases.undo),
    confirmBinding: counted("binding", cases.confirmBinding),
    changeBinding: counted("binding", cases.changeBinding),
    requestCancel: counted("run", cases.requestCancel),
    furtherRefund: counted("further", cases.furtherRefund),
    ops: measuredOps(cases.ops, forbidden),
  };
}

function measuredOps(ops: OpsUseCases, forbidden: Forbidden): OpsUseCases {
  const counted = counter(forbidden);
  return {
    ...ops,
    help: counted("ops", ops.help),
    list: counted("ops", ops.list),
    show: counted("ops", ops.show),
    events: counted("ops", ops.events),
    runs: counted("ops", ops.runs),
    approvals: counted("ops", ops.approvals),
    health: counted("ops", ops.health),
    incidents: counted("ops", ops.incidents),
    openResolution: counted("resolve", ops.openResolution),
    askProvider: counted("resolve", ops.askProvider),
    resolve: counted("resolve", ops.resolve),
    second: counted("resolve", ops.second),
    openReopening: counted("resolve", ops.openReopening),
    reopen: counted("resolve", ops.reopen),
    openClosing: counted("resolve", ops.openClosing),
    closeIncident: counted("resolve", ops.closeIncident),
    freeze: counted("freeze", ops.freeze),
    thaw: counted("freeze", ops.thaw),
    secondThaw: counted("freeze", ops.secondThaw),
  };
}

const counter =
  (forbidden: Forbidden) =>
  <Request, Out extends Answer>(what: string, useCase: (request: Request) => Promise<Out>) =>
  async (request: Request): Promise<Out> => {
    const answer = await useCase(request);
    if (isForbidden(answer)) forbidden(what);
    return answer;
  };

/** Codes of refusals that are about who asks; the others are about the state of things. */
const ABOUT_WHO: ReadonlySet<string> = new Set([
  "standing",
  "not_in_role",
  "over_limit",
  "is_filer",
  "is_approver",
  "same_person",
  "not_filer",
  "not_this_customer",
]);

function isForbidden(answer: Answer): boolean {
  if (answer.outcome !== "refused") return false;
  const code = "reason" in answer ? answer.reason : "code" in answer ? answer.code : null;
  return typeof code === "string" && ABOUT_WHO.has(code);
}
