/** Stories about the wire and the process: the answer is lost, late, impossible to get; the program dies. */
import type { FaultSpec } from "../../../sandbox/payments/index.js";
import type { Stage, Thread } from "../stage.js";
import { CONFIRMED_180, heldRefund } from "./refunds.js";
import type { Story } from "./story.js";

/** Approves a held refund into a fault that makes its outcome unknown, and waits until it is known. */
async function refundThrough(stage: Stage, fault: FaultSpec): Promise<Thread> {
  const thread = await heldRefund(stage);
  stage.fault(fault);
  await stage.approve("U_SUP1", thread);
  await stage.until("the operation to have been unknown", async () => {
    const operation = (await stage.operations()).at(0);
    return operation !== undefined && (await stage.eventTypes(operation.id)).includes("settle_unknown");
  });
  await stage.count("after the fault");
  await recovered(stage, thread);
  return thread;
}

async function recovered(stage: Stage, thread: Thread): Promise<void> {
  await stage.operationIn("CONFIRMED");
  await stage.runIn(thread, "resolved");
  await stage.world.payments.control.settle();
  await stage.count("after recovery");
}

export const lostResponseStory: Story = {
  name: "lost-response",
  shows: "The provider commits and the answer is lost: checked, never guessed, one effect.",
  expected: CONFIRMED_180,
  play: (stage) => refundThrough(stage, { kind: "commit_then_drop" }),
};

export const failedBeforeCommitStory: Story = {
  name: "failed-before-commit",
  shows: "The connection breaks before anything happened: sent again under the same key, one effect.",
  expected: CONFIRMED_180,
  play: (stage) => refundThrough(stage, { kind: "drop_before_commit" }),
};

export const lateCommitStory: Story = {
  name: "late-commit",
  shows: "The provider commits after we have looked: the same key makes it one effect all the same.",
  expected: CONFIRMED_180,
  play: (stage) => refundThrough(stage, { kind: "late_commit", delayMs: 4000, answer: "drop" }),
};

export const crashAfterSendStory: Story = {
  name: "crash-after-send",
  shows:
    "The program is killed after the request left and before its answer was stored: one effect after the restart.",
  expected: CONFIRMED_180,
  env: { COUNTERSIGN_FAILPOINTS: "dispatch.after_send=kill" },
  async play(stage) {
    const thread = await heldRefund(stage);
    await stage.approve("U_SUP1", thread);
    await stage.productEnded();
    stage.say("the program was killed after the request left");
    await stage.count("after the fault");
    await stage.start({ COUNTERSIGN_FAILPOINTS: "" });
    await recovered(stage, thread);
    return thread;
  },
};

export const quarantineStory: Story = {
  name: "quarantine",
  shows: "Nobody can know the outcome: a person resolves it, with reason and evidence.",
  expected: CONFIRMED_180,
  env: { QUARANTINE_AFTER_MS: "3000", RECONCILE_BASE_MS: "300", RECONCILE_MAX_MS: "1000" },
  async play(stage) {
    const thread = await heldRefund(stage);
    stage.fault({ kind: "commit_then_drop", onReplay: true, times: null });
    const down = stage.fault({ kind: "read_down", how: "500" });
    await stage.approve("U_SUP1", thread);
    await stage.operationIn("QUARANTINED");
    await stage.count("after the fault");
    stage.say("nobody can know: the operation is quarantined, and its card is in #ops");
    stage.world.payments.control.disarm(down);
    await stage.resolveQuarantine("U_ONC1", "Confirm committed", {
      Reason: "The provider's dashboard shows the refund.",
      Evidence: "Dashboard, refund list of the payment",
    });
    await recovered(stage, thread);
    return thread;
  },
};
