/** Stories about scope: what the order allows and whose it is. */
import type { Story } from "./story.js";

export const dispatchedOrderStory: Story = {
  name: "dispatched-order",
  shows: "An order that has left cannot be cancelled.",
  expected: { statuses: [], committed: 0, amounts: {}, runState: "escalated", verifiedSuccess: false },
  async play(stage) {
    const thread = await stage.file("U_AGENT", "Please cancel order A-4472.");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "escalated");
    await stage.count("before approval");
    return thread;
  },
};

export const otherOwnerStory: Story = {
  name: "other-owner",
  shows: "Another customer's order is invisible to this ticket.",
  expected: { statuses: [], committed: 0, amounts: {}, runState: "escalated", verifiedSuccess: false },
  async play(stage) {
    const thread = await stage.file("U_AGENT", "This is for alice@shop.example: please cancel order B-9001.");
    // What may be looked up is looked up; what would change anything waits for who the customer is.
    await stage.runIn(thread, "awaiting_binding");
    await stage.chooseCustomer(thread, "alice@shop.example");
    await stage.runIn(thread, "escalated");
    await stage.count("before approval");
    return thread;
  },
};
