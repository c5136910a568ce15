import {
  crashAfterSendStory,
  failedBeforeCommitStory,
  lateCommitStory,
  lostResponseStory,
  quarantineStory,
} from "./faults.js";
import { dispatchedOrderStory, otherOwnerStory } from "./orders.js";
import {
  deniedStory,
  duplicateRefundStory,
  heldRefundStory,
  overLimitStory,
  staleApprovalStory,
  strictApprovalStory,
} from "./refunds.js";
import type { Story } from "./story.js";

export type { Story } from "./story.js";

/** Every story that `demo --story` plays, in the order in which they are best watched. */
export const STORIES: readonly Story[] = [
  heldRefundStory,
  lostResponseStory,
  failedBeforeCommitStory,
  deniedStory,
  dispatchedOrderStory,
  otherOwnerStory,
  staleApprovalStory,
  duplicateRefundStory,
  lateCommitStory,
  crashAfterSendStory,
  quarantineStory,
  strictApprovalStory,
  overLimitStory,
];
