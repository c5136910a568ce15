/** Faults of the payments provider, each with the number of times it really fired. */
import { get, Refused, send } from "../api.js";
import { fill, h } from "../dom.js";
import { list, obj, str } from "../json.js";
import { action, choose, count, fieldset } from "./form.js";

const EVERY_MS = 2_000;

/**
 * Kind, its name in words (as everywhere, see `fault-words.ts`), and how it is armed. `times` is put in by the form.
 * @type {[string, string, Record<string, unknown>][]}
 */
export const KINDS = [
  ["commit_then_drop", "Commits, the answer is lost", {}],
  ["drop_before_commit", "Breaks before anything happens", {}],
  ["late_commit", "Breaks, commits later (20 s)", { delayMs: 20_000, answer: "drop" }],
  ["commit_then_hang", "Commits, answers too late (30 s)", { delayMs: 30_000 }],
  ["commit_then_500", "Commits, answers 500", {}],
  ["commit_then_stall", "Commits, half an answer, then silence", {}],
  ["commit_then_cut", "Commits, half an answer, then cut", {}],
  ["commit_then_garbage", "Commits, the answer is no JSON", {}],
  ["hang_then_commit", "Waits, then commits and answers (20 s)", { delayMs: 20_000 }],
  ["redeliver", "The request arrives twice", { copies: 1 }],
  ["rate_limited", "Answers 429", { code: "rate_limit" }],
  ["key_in_use", "Answers 409, key in use", {}],
  ["refuse", "Refuses for good", { code: "charge_already_refunded" }],
  ["idempotency_error", "Same key, other parameters", {}],
  ["forget_key", "Forgets the idempotency key first", {}],
  [
    "outcome:pending",
    "Accepts, the outcome comes later (pending, then success, 20 s)",
    { kind: "outcome", status: "pending", later: { status: "succeeded", afterMs: 20_000 } },
  ],
  [
    "outcome:failed",
    "Accepts, the outcome comes later (success, then failure, 20 s)",
    { kind: "outcome", status: "succeeded", later: { status: "failed", afterMs: 20_000 } },
  ],
  ["wrong_answer", "Another amount than asked (1 minor unit)", { amount: 1 }],
  ["stale_read", "Reads lag behind (30 s)", { lagMs: 30_000, endless: true }],
  ["lying_read", "Reads lie (refunds are hidden)", { lie: "hide", endless: true }],
  ["read_down", "Reads fail (500)", { how: "500", endless: true }],
];

/** @returns {{ element: HTMLElement, shown: (visible: boolean) => void }} */
export function paymentFaults() {
  const kind = choose(
    "What happens",
    KINDS.map(([id, name]) => [id, name]),
  );
  const times = count("How many times", 1);
  const active = h("ul", { class: "fault-list" });
  const held = h(
    "p",
    { class: "panel-intro", role: "status", hidden: true },
    "Webhooks are held: the provider tells nothing by itself.",
  );
  const missing = h("p", { class: "panel-intro", hidden: true }, "No payments sandbox is attached here.");
  let visible = false;
  let timer = 0;
  const look = async () => {
    window.clearTimeout(timer);
    if (!visible) return;
    try {
      const mode = await send("payments/webhooks/mode", {});
      drawHeld(obj(mode)["paused"] === true);
      drawActive(active, await get("payments/faults"), look);
      missing.hidden = true;
      form.hidden = false;
    } catch (error) {
      missing.hidden = false;
      form.hidden = true;
      missing.textContent =
        error instanceof Refused && error.status === 404
          ? "No payments sandbox is attached here."
          : "The payments sandbox does not answer.";
    }
    if (visible) timer = window.setTimeout(() => void look(), EVERY_MS);
  };
  const setHeld = (/** @type {boolean} */ paused) => send("payments/webhooks/mode", { paused }).then(look);
  const hold = action("Hold webhooks", () => setHeld(true));
  const release = action("Release webhooks", () => setHeld(false));
  release.hidden = true;
  /** One of the two buttons stands there, so that the state can be read from it. @param {boolean} paused */
  function drawHeld(paused) {
    held.hidden = !paused;
    hold.hidden = paused;
    release.hidden = !paused;
  }
  const arm = async () => {
    const [id, , more] = KINDS.find(([name]) => name === kind.value) ?? ["", "", {}];
    const { endless, ...rest } = more;
    await send("payments/faults", {
      kind: id,
      times: endless === true ? null : Number(times.value),
      ...rest,
    });
    await look();
  };
  const form = h(
    "div",
    { class: "fault-form" },
    h("span", null, "The next"),
    times,
    h("span", null, "refunds:"),
    kind,
    action("Switch on", arm),
    action("All off", () => send("payments/faults", {}, "DELETE").then(look)),
  );
  return {
    element: fieldset(
      "Payments",
      missing,
      form,
      active,
      h(
        "div",
        { class: "fault-form" },
        action(
          "Forget all idempotency keys",
          () => send("payments/keys/expire", {}),
          "The provider has forgotten its idempotency keys.",
        ),
        hold,
        release,
      ),
      held,
    ),
    shown(now) {
      if (now === visible) return;
      visible = now;
      void look();
    },
  };
}

/** @param {HTMLElement} target @param {unknown} answer @param {() => Promise<void>} look */
function drawActive(target, answer, look) {
  const armed = list(obj(answer)["faults"])
    .filter((f) => f["armed"] === true || Number(f["fired"]) > 0)
    .slice(-12)
    .reverse();
  fill(
    target,
    armed.map((status) => {
      const fault = obj(status["fault"]);
      const words =
        KINDS.find(
          ([id, , more]) =>
            (more["kind"] ?? id) === fault["kind"] &&
            (more["status"] === undefined || more["status"] === fault["status"]),
        )?.[1] ?? str(fault["kind"]);
      const left = status["remaining"] === null ? "until switched off" : `${str(status["remaining"])} left`;
      const on = status["armed"] === true;
      return h(
        "li",
        { class: on ? "" : "fault-spent" },
        h("span", null, `${words}: fired ${str(status["fired"])}, ${on ? left : "off"}`),
        on
          ? action("Off", () => send(`payments/faults/${str(status["id"])}`, {}, "DELETE").then(look))
          : null,
      );
    }),
  );
}
