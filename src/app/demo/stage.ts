/**
 * A stage for one story: people who act in the Slack sandbox, faults at the provider, and a look at both books (our ledger,
 * the provider's own list) at each phase. The story never asks the product what it did: it counts.
 */

import { setTimeout as pause } from "node:timers/promises";
import { hostEnvironment } from "../../config/host.js";
import type { Db } from "../../db/connect.js";
import { formatMoney, money } from "../../domain/money.js";
import { counted } from "../../domain/text/counted.js";
import { FAULT_WORDS, type FaultSpec } from "../../sandbox/payments/index.js";
import type { MessageView, ModalView } from "../../sandbox/slack/control-types.js";
import type { ShopFile } from "../../shop/index.js";
import { offlineContext } from "../compose/offline.js";
import { importShopFile } from "../compose/shop.js";
import { print } from "../output.js";
import { type LedgerRow, readApprovals, readEventTypes, readOperations, readRunStates } from "./books.js";
import { lastActs } from "./last-acts.js";
import { type Product, startProduct } from "./product.js";
import type { World } from "./world.js";

const LOOK_EVERY_MS = 50;
const WAIT_MS = 60_000;
const CLICKS_AT_MOST = 5;
const CLICK_AGAIN_MS = 2_000;
/** What a vote that counts is answered with. */
const COUNTS = /^(?:Approved|Your approval is recorded)/u;
/** The card was made anew while it was pressed. */
const OLDER_CARD = /^This is an older card of .*; please use the newest one\. Nothing was changed\./u;
/**
 * Nothing was done with the click, and the person is told so: Slack could not be asked about them, it came too late for a form, or the
 * database undid it.
 */
export const NOT_NOW =
  /^(?:Slack could not be asked (?:who you are just now|just now whether you are in the role \w+), so nothing was changed\. Please try again in a minute\.|The form could not be opened in time\. Please click again\.$|This could not be recorded just now, and nothing was sent\. Please click again\.$)/u;

export interface StageOptions {
  /** Every wait ends when this is aborted. */
  stopped?: AbortSignal;
  world: World;
  db: Db;
  logFile: string;
  extraEnv?: Readonly<Record<string, string>>;
  /** Hears what happens, line by line. Default: stdout. */
  tell?: (line: string) => void;
  /** Waited for before each act of a person, so that somebody can follow on the page. */
  pace?: () => Promise<void>;
}

export interface Phase {
  name: string;
  ledger: { committed: number; amounts: Record<string, number>; statuses: Record<string, number> };
  provider: { committed: number; amounts: Record<string, number>; duplicates: number; posts: number };
}

/** Where a person filed something. */
export interface Thread {
  channel: string;
  ts: string;
  filer: string;
}

export class Stage {
  readonly world: World;
  readonly db: Db;
  readonly phases: Phase[] = [];
  readonly #logFile: string;
  readonly #stopped: AbortSignal | undefined;
  readonly #extraEnv: Readonly<Record<string, string>>;
  readonly #tell: (line: string) => void;
  readonly #pace: () => Promise<void>;
  #product: Product | null = null;
  /** Operations of earlier stories on the same database do not count. */
  #before: ReadonlySet<string> = new Set();
  #providerBefore = {
    committed: 0,
    duplicates: 0,
    posts: 0,
    cancellations: 0,
    amounts: {} as Record<string, number>,
  };
  #faults: string[] = [];

  constructor(options: StageOptions) {
    this.world = options.world;
    this.db = options.db;
    this.#logFile = options.logFile;
    this.#stopped = options.stopped;
    this.#extraEnv = options.extraEnv ?? {};
    this.#tell = options.tell ?? print;
    this.#pace = options.pace ?? (() => Promise.resolve());
  }

  /** Remembers what both books hold already, so that only this story's effects are counted. */
  async open(): Promise<void> {
    this.#before = new Set((await readOperations(this.db)).map((operation) => operation.id));
    this.#providerBefore = await this.world.payments.control.counts();
  }

  /** Starts the product with its variables, plus `env`. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#product = await startProduct({
      env: { ...hostEnvironment(), ...this.world.env, ...this.#extraEnv, ...env },
      port: this.world.productPort,
      logFile: this.#logFile,
    });
  }

  async stop(): Promise<void> {
    await this.#product?.stop();
    this.#product = null;
  }

  /** False before the start, and when the process has ended by itself. */
  get running(): boolean {
    return this.#product?.running() ?? false;
  }

  /** Resolves when the product has ended by itself (a failpoint). */
  async productEnded(): Promise<void> {
    if (this.#product === null) throw new Error("the product is not running");
    await this.#product.ended;
    this.#product = null;
  }

  // ── people ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Files a ticket as a message in the tickets channel. */
  async file(as: string, text: string): Promise<Thread> {
    await this.#pace();
    this.say(`${as} files: ${text}`);
    const posted = await this.world.slack.control.post({ as, channel: "C_TICK", text });
    if (!posted.ok) throw new Error(`the ticket could not be posted: ${posted.message}`);
    return { channel: posted.channel, ts: posted.ts, filer: as };
  }

  /** The filer confirms whom the ticket is about; where the work is over before anybody had to, there is nothing to confirm. */
  async confirmBinding(thread: Thread): Promise<void> {
    const [card] = await this.until("the question whom the ticket is about", async () => {
      const messages = this.threadMessages(thread);
      const open = messages.filter((message) => buttonLabels(message).includes("Confirm"));
      const over = messages.filter((message) =>
        /Nobody confirmed this\.|Whoever filed it did not confirm this\./u.test(
          JSON.stringify(message.blocks),
        ),
      );
      return open.length + over.length > 0 ? open : null;
    });
    const pressed =
      card !== undefined &&
      (await this.world.slack.control.click({
        as: thread.filer,
        at: { channel: card.channel, ts: card.ts },
        label: "Confirm",
      }));
    // Gone between the look and the click: the run ended in between.
    const over = pressed === false || (!pressed.ok && pressed.error === "unknown_element");
    if (!over && !pressed.ok) throw new Error(`the customer could not be confirmed: ${pressed.message}`);
    this.say(over ? "the work is over; nothing is left to confirm" : `${thread.filer} confirms the customer`);
  }

  /** Presses the newest button in the thread whose label begins so, as soon as it is there; gives what the button carries. */
  async press(as: string, thread: Thread, label: string): Promise<string | null> {
    const message = await this.messageWith(thread, label);
    await this.#pace();
    const pressed = await this.world.slack.control.click({
      as,
      at: { channel: message.channel, ts: message.ts },
      label,
    });
    if (!pressed.ok) throw new Error(`"${label}" could not be pressed by ${as}: ${pressed.message}`);
    return buttonsOf(message).find(({ text }) => text.startsWith(label))?.value ?? null;
  }

  /** Presses Approve; whoever is told to click again does, and whoever is told anything else has not approved. */
  async approve(as: string, thread: Thread): Promise<void> {
    for (let tries = 1; tries <= CLICKS_AT_MOST; tries += 1) {
      const told = this.toldPrivately(as, thread).length;
      const button = await this.press(as, thread, "Approve");
      const answer = await this.#answered(as, thread, told, button);
      if (answer === null || COUNTS.test(answer)) {
        this.say(`${as} approves`);
        return;
      }
      if (!NOT_NOW.test(answer) && !OLDER_CARD.test(answer))
        throw new Error(`${as} pressed Approve and was told: ${answer}`);
      this.say(`${as} is told: ${answer}`);
      await pause(CLICK_AGAIN_MS);
    }
    throw new Error(`${as} was told ${CLICKS_AT_MOST} times to click again`);
  }

  /** What only this person was told in the thread, oldest first. */
  toldPrivately(as: string, thread: { channel: string; ts: string }): string[] {
    return this.world.slack.control
      .messages(as, thread.channel, { threadTs: thread.ts, ephemeral: true })
      .filter((message) => message.ephemeral)
      .map(({ text }) => text);
  }

  /** The sentence that answers a click on Approve; null when it was decided first, or when whoever should answer is gone. */
  async #answered(as: string, thread: Thread, told: number, button: string | null): Promise<string | null> {
    const { answer } = await this.until(`${as}'s click on Approve to be answered or to decide`, async () => {
      const said = this.toldPrivately(as, thread).at(told);
      if (said !== undefined) return { answer: said };
      const pending = (await readApprovals(this.db)).filter(({ state }) => state === "PENDING");
      const decided = !pending.some((approval) => idOf(approval.button) === idOf(button));
      return !this.running || decided ? { answer: null } : null;
    });
    return answer;
  }

  async deny(as: string, thread: Thread, note: string): Promise<void> {
    await this.openForm(as, thread, "Deny");
    await this.submitForm(as, { Note: note });
    this.say(`${as} denies: ${note}`);
  }

  /**
   * Presses a button that opens a form, and gives the form. Whoever is told to click again does; any other sentence, and neither form nor
   * sentence, is a failure.
   */
  async openForm(as: string, thread: Thread, label: string): Promise<ModalView> {
    for (let tries = 1; tries <= CLICKS_AT_MOST; tries += 1) {
      const told = this.toldPrivately(as, thread).length;
      const before = new Set(this.world.slack.control.modals(as).map(({ id }) => id));
      await this.press(as, thread, label);
      const answer = await this.until(`the form of ${as} after "${label}", or a sentence`, async () => {
        const form = this.world.slack.control.modals(as).find(({ id }) => !before.has(id));
        return form ?? this.toldPrivately(as, thread).at(told);
      });
      if (typeof answer !== "string") return answer;
      if (!NOT_NOW.test(answer))
        throw new Error(`"${label}" opened no form for ${as}, who was told: ${answer}`);
      this.say(`${as} is told: ${answer}`);
      await pause(CLICK_AGAIN_MS);
    }
    throw new Error(`${as} was told ${CLICKS_AT_MOST} times to click again`);
  }

  /** Fills the person's topmost form and submits it. Keys are the labels of the inputs. */
  async submitForm(as: string, values: Record<string, string>): Promise<void> {
    const modal = await this.until(`a form for ${as}`, async () =>
      // One that says that an earlier form is still worked on has nothing to submit.
      this.world.slack.control
        .modals(as)
        .filter(({ submitLabel }) => submitLabel !== null)
        .at(-1),
    );
    await this.#pace();
    const sent = await this.world.slack.control.submitView({ as, viewId: modal.id, values });
    if (!sent.ok) throw new Error(`the form "${modal.title}" was not accepted: ${sent.message}`);
  }

  /** The newest message of the thread that has a button whose label begins so. A decision has its button until it is made. */
  messageWith(thread: { channel: string; ts: string }, label: string): Promise<MessageView> {
    return this.until(`a message with a button "${label}…"`, async () => {
      const message = this.threadMessages(thread)
        .reverse()
        .find((candidate) => buttonsOf(candidate).some(({ text }) => text.startsWith(label)));
      const value = message && buttonsOf(message).find(({ text }) => text.startsWith(label))?.value;
      if (value?.startsWith("apr_") !== true) return message;
      // A card lags behind the row that it shows; people who see it so are told, and this one looks again.
      const approvals = await readApprovals(this.db);
      const open = approvals.some(
        ({ button, state }) => button === value && (state === "PENDING" || state === "APPROVED"),
      );
      return open ? message : null;
    });
  }

  /** Several customers fit the ticket: the filer names one in the form behind Choose. */
  async chooseCustomer(thread: Thread, reference: string): Promise<void> {
    await this.press(thread.filer, thread, "Choose");
    await this.submitForm(thread.filer, { "Or another order, subscription or e-mail": reference });
    this.say(`${thread.filer} says that the ticket is about ${reference}`);
  }

  /** On-call resolves the quarantined operation by the card in the ops channel. */
  async resolveQuarantine(as: string, label: string, form: Record<string, string>): Promise<void> {
    const card = await this.until(`a card with "${label}" in the ops channel`, async () =>
      this.world.slack.control
        .messages(as, "C_OPS")
        .reverse()
        .find((message) => buttonLabels(message).some((text) => text.startsWith(label))),
    );
    await this.#pace();
    const pressed = await this.world.slack.control.click({
      as,
      at: { channel: card.channel, ts: card.ts },
      label,
    });
    if (!pressed.ok) throw new Error(`"${label}" could not be pressed by ${as}: ${pressed.message}`);
    await this.submitForm(as, form);
    this.say(`${as}: ${label}`);
  }

  threadMessages(thread: { channel: string; ts: string }): MessageView[] {
    return this.world.slack.control.messages("U_SUP1", thread.channel, { threadTs: thread.ts });
  }

  // ── the provider ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Arms a fault at the provider. */
  fault(spec: FaultSpec): string {
    const id = this.world.payments.control.arm(spec);
    this.#faults.push(id);
    this.say(`fault at the provider: ${FAULT_WORDS[spec.kind]}`);
    return id;
  }

  /** @throws when an armed fault never took effect: then the story proved nothing */
  assertFaultsFired(): void {
    for (const id of this.#faults) {
      if (this.world.payments.control.fired(id) === 0) throw new Error(`the fault ${id} never took effect`);
    }
  }

  /** Ends the faults of this story. */
  calm(): void {
    for (const id of this.#faults) this.world.payments.control.disarm(id);
  }

  // ── the shop ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Imports the demo shop again, changed. */
  async importShop(change: (shop: ShopFile) => ShopFile): Promise<void> {
    await importShopFile(offlineContext(this.db), change(this.world.shop));
  }

  // ── books ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** This story's operations, oldest first. */
  async operations(): Promise<LedgerRow[]> {
    return (await readOperations(this.db)).filter((operation) => !this.#before.has(operation.id));
  }

  /** Waits until one of this story's operations has the state. */
  operationIn(...statuses: string[]): Promise<LedgerRow> {
    return this.until(`an operation in ${statuses.join(" or ")}`, async () =>
      (await this.operations()).find((operation) => statuses.includes(operation.status)),
    );
  }

  /** Waits until the ticket's newest run has the state. */
  runIn(thread: Thread, ...states: string[]): Promise<{ id: string; state: string }> {
    return this.until(`a run in ${states.join(" or ")}`, async () =>
      (await readRunStates(this.db, thread)).find((run) => states.includes(run.state)),
    );
  }

  /** States of this story's approvals, oldest first. */
  async approvalStates(): Promise<string[]> {
    const ours = new Set((await this.operations()).map((operation) => operation.id));
    return (await readApprovals(this.db)).filter((row) => ours.has(row.operationId)).map((row) => row.state);
  }

  eventTypes(operationId: string): Promise<string[]> {
    return readEventTypes(this.db, operationId);
  }

  /** Counts both books and prints them side by side. */
  async count(name: string): Promise<Phase> {
    const operations = await this.operations();
    const provider = await this.world.payments.control.counts();
    const confirmed = operations.filter((operation) => operation.status === "CONFIRMED");
    const phase: Phase = {
      name,
      ledger: {
        committed: confirmed.length,
        amounts: sums(confirmed),
        statuses: tally(operations.map((operation) => operation.status)),
      },
      provider: {
        committed: provider.committed - this.#providerBefore.committed,
        amounts: difference(provider.amounts, this.#providerBefore.amounts),
        duplicates: provider.duplicates - this.#providerBefore.duplicates,
        posts: provider.posts - this.#providerBefore.posts,
      },
    };
    this.phases.push(phase);
    this.#tell(
      `  ${name.padEnd(16)} ledger: ${describe(phase.ledger.committed, phase.ledger.amounts)} ${statusList(phase.ledger.statuses)}`,
    );
    this.#tell(
      `  ${"".padEnd(16)} provider: ${describe(phase.provider.committed, phase.provider.amounts)}; ${counted(phase.provider.posts, "request")} to refund`,
    );
    return phase;
  }

  /** Waits until the thread's run has its end and no operation of the story is on its way. */
  async settled(thread: Thread, runState: string): Promise<void> {
    await this.runIn(thread, runState);
    await this.world.payments.control.settle();
  }

  // ── saying and waiting ─────────────────────────────────────────────────────────────────────────────────────────

  say(line: string): void {
    this.#tell(`- ${line}`);
  }

  /** Looks until there is an answer. @throws with what was waited for when there is none in a minute */
  async until<T>(what: string, look: () => Promise<T | undefined | null | false>): Promise<T> {
    for (let waited = 0; waited < WAIT_MS; waited += LOOK_EVERY_MS) {
      if (this.#stopped?.aborted === true) throw new Error(`stopped while waiting for ${what}`);
      const found = await look();
      if (found !== undefined && found !== null && found !== false) return found;
      await pause(LOOK_EVERY_MS);
    }
    throw new Error(
      `waited ${WAIT_MS / 1000} s for ${what} in vain${lastActs(this.world.slack.control.journal())}`,
    );
  }
}

/** Which approval a button is of, whatever the version of its card. */
const idOf = (button: string | null): string => button?.split(".")[0] ?? "";

/** Labels of the buttons that a message shows. */
export const buttonLabels = (message: MessageView): string[] => buttonsOf(message).map(({ text }) => text);

/** The buttons that a message shows, with what they carry. */
export function buttonsOf(message: MessageView): { text: string; value: string | null }[] {
  return message.blocks.flatMap((block) => {
    if (block["type"] !== "actions" || !Array.isArray(block["elements"])) return [];
    return block["elements"].flatMap((element) => {
      if (element === null || typeof element !== "object" || Array.isArray(element)) return [];
      const { text, value } = element;
      if (text === null || typeof text !== "object" || Array.isArray(text)) return [];
      return typeof text?.["text"] === "string"
        ? [{ text: text["text"], value: typeof value === "string" ? value : null }]
        : [];
    });
  });
}

function sums(rows: readonly LedgerRow[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const row of rows) {
    if (row.amountMinor > 0n) sum[row.currency] = (sum[row.currency] ?? 0) + Number(row.amountMinor);
  }
  return sum;
}

function difference(now: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const left: Record<string, number> = {};
  for (const [currency, amount] of Object.entries(now)) {
    const name = currency.toUpperCase();
    const rest = amount - (before[currency] ?? 0);
    if (rest !== 0) left[name] = rest;
  }
  return left;
}

function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function describe(committed: number, amounts: Record<string, number>): string {
  const totals = Object.entries(amounts).map(([currency, minor]) =>
    formatMoney(money(BigInt(minor), currency)),
  );
  return `${committed} ${committed === 1 ? "effect" : "effects"}${totals.length === 0 ? "" : ` (${totals.join(", ")})`}`;
}

function statusList(statuses: Record<string, number>): string {
  const parts = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
  return parts.length === 0 ? "" : `[${parts.join(", ")}]`;
}
