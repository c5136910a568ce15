/** Faults to switch on: for the next calls and deliveries of Slack, its sockets, its clock, and for the payments provider. */
/** @import { Panel } from "./drawer.js" */
import { h } from "../dom.js";
import { paymentFaults } from "./faults-payments.js";
import { slackFaults } from "./faults-slack.js";
import { timeControls } from "./time.js";

/** @returns {Panel} */
export function faultsPanel() {
  const slack = slackFaults();
  const payments = paymentFaults();
  return {
    element: h("div", { class: "panel faults" }, payments.element, slack.element, timeControls()),
    shown(now) {
      payments.shown(now);
    },
  };
}
