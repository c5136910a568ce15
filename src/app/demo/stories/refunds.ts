/** Refund stories: held, approved, denied, asked twice, gone stale. */
import type { Stage, Thread } from "../stage.js";
import type { Story } from "./story.js";

const TOM = "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.";

/** A held £180.00 refund, up to the click. */
export async function heldRefund(stage: Stage): Promise<Thread> {
  const thread = await stage.file("U_AGENT", TOM);
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "awaiting_approval");
  await stage.operationIn("AWAITING_APPROVAL");
  await stage.count("before approval");
  return thread;
}

/** One refund of £180.00, and the ticket resolved. */
export const CONFIRMED_180 = {
  statuses: ["CONFIRMED"],
  committed: 1,
  amounts: { GBP: 18000 },
  runState: "resolved",
  verifiedSuccess: true,
} as const;

export const heldRefundStory: Story = {
  name: "held-refund",
  shows: "A refund above the limit waits for a supervisor, then happens once.",
  expected: CONFIRMED_180,
  async play(stage) {
    const thread = await heldRefund(stage);
    await stage.approve("U_SUP1", thread);
    await stage.operationIn("CONFIRMED");
    await stage.count("after approval");
    await stage.runIn(thread, "resolved");
    return thread;
  },
};

export const deniedStory: Story = {
  name: "denied",
  shows: "A supervisor's no ends the operation, and nothing is sent.",
  expected: {
    statuses: ["DENIED"],
    committed: 0,
    amounts: {},
    runState: "escalated",
    verifiedSuccess: false,
  },
  async play(stage) {
    const thread = await heldRefund(stage);
    await stage.deny("U_SUP1", thread, "The photos show normal wear.");
    await stage.operationIn("DENIED");
    await stage.count("after approval");
    await stage.runIn(thread, "escalated");
    return thread;
  },
};

export const staleApprovalStory: Story = {
  name: "stale-approval",
  shows: "The order changes between card and click: the old approval dies, a new card shows the difference.",
  expected: CONFIRMED_180,
  async play(stage) {
    const thread = await heldRefund(stage);
    await stage.importShop((shop) => ({
      ...shop,
      orders: shop.orders.map((order) =>
        order.ref === "ORD-10042" && order.payment != null
          ? { ...order, payment: { ...order.payment, captured: 20_000 } }
          : order,
      ),
    }));
    stage.say("meanwhile the shop corrects the order's payment to £200.00");
    await stage.approve("U_SUP1", thread);
    await stage.until("the first approval to be void and a new one to ask", async () => {
      const states = await stage.approvalStates();
      return states.includes("VOIDED") && states.includes("PENDING");
    });
    await stage.count("after approval");
    stage.say("the approval is void, and a new card shows what changed");
    await stage.approve("U_SUP1", thread);
    await stage.operationIn("CONFIRMED");
    await stage.runIn(thread, "resolved");
    await stage.count("after recovery");
    return thread;
  },
};

export const duplicateRefundStory: Story = {
  name: "duplicate-refund",
  shows: "The same refund asked in a second ticket pays once, and the thread says so.",
  expected: CONFIRMED_180,
  async play(stage) {
    const first = await heldRefund(stage);
    await stage.approve("U_SUP1", first);
    await stage.runIn(first, "resolved");
    await stage.count("after approval");
    const second = await stage.file("U_AGENT", TOM);
    await stage.confirmBinding(second);
    await stage.runIn(second, "resolved");
    await stage.until("the second thread to tell the stored result", async () =>
      stage.threadMessages(second).some((message) => /already|before/i.test(message.text)),
    );
    await stage.count("after recovery");
    return second;
  },
};

export const strictApprovalStory: Story = {
  name: "strict-approval",
  shows: "Under the strict policy even $25.00 needs an approval.",
  policy: "policies/strict.yaml",
  expected: {
    statuses: ["CONFIRMED"],
    committed: 1,
    amounts: { USD: 2500 },
    runState: "resolved",
    verifiedSuccess: true,
  },
  async play(stage) {
    const thread = await stage.file("U_AGENT", "ORDER-100 never worked. Please refund it in full.");
    await stage.confirmBinding(thread);
    await stage.operationIn("AWAITING_APPROVAL");
    await stage.count("before approval");
    await stage.approve("U_SUP1", thread);
    await stage.operationIn("CONFIRMED");
    await stage.runIn(thread, "resolved");
    await stage.count("after approval");
    return thread;
  },
};

export const overLimitStory: Story = {
  name: "over-limit",
  shows: "Under the strict policy $330.00 is refused, whoever asks.",
  policy: "policies/strict.yaml",
  expected: { statuses: [], committed: 0, amounts: {}, runState: "escalated", verifiedSuccess: false },
  async play(stage) {
    const thread = await stage.file("U_AGENT", "ORD-1002 is broken. Please refund all of it.");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "escalated");
    await stage.count("before approval");
    return thread;
  },
};
