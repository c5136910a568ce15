/**
 * The policy: its file, its stored versions and the active one, and the gate over facts of the database. Rows of
 * `policy_versions` and `active_policy` are written here only.
 */
export {
  type ActivePolicy,
  activatePolicy,
  activePolicy,
  policyLoadedAt,
  policyVersion,
} from "./active-policy.js";
export {
  checkPolicyFile,
  type ExplainRequest,
  type Explanation,
  explainDecision,
  explanationJson,
  type PolicyCheck,
} from "./explain.js";
export { makeJudge } from "./judge.js";
export {
  loadPolicyFile,
  type PolicyWatch,
  type WatchPolicyOptions,
  watchPolicyFile,
} from "./policy-file-watch.js";
export {
  type LoadedPolicy,
  PolicyFileError,
  type PolicyFileProblem,
  readPolicyText,
} from "./policy-text.js";
