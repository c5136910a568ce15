/** Statements 10 to 12 and 33: limits of Block Kit, refused with Slack's words and JSON pointers. */
import { describe, expect, test, vi } from "vitest";
import { checkBlocks, type Surface } from "../../../src/sandbox/slack/blocks/blocks.js";
import { sentence } from "../../../src/sandbox/slack/blocks/check.js";
import { checkView } from "../../../src/sandbox/slack/blocks/view.js";
import { refused, sandbox, section, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

const x = (n: number): string => "x".repeat(n);
const plain = (n: number): object => ({ type: "plain_text", text: x(n) });
const option = (n = 1, i = 0): object => ({ text: plain(n), value: `v${i}` });
const options = (n: number): object[] => Array.from({ length: n }, (_, i) => option(1, i));
const inActions = (element: object): object => ({ type: "actions", elements: [element] });
const asInput = (element: object, more: object = {}): object => ({
  type: "input",
  label: plain(5),
  element,
  ...more,
});
const press = (more: object = {}): object => ({ type: "button", text: plain(5), action_id: "a", ...more });

/** A block that is just allowed, the same with one more, where the problem is, and Slack's words for it. */
const LIMITS: [string, Surface, object, object, string, string][] = [
  [
    "section text 3000",
    "message",
    section(x(3000)),
    section(x(3001)),
    "/text/text",
    "must be less than 3001 characters",
  ],
  [
    "section text not empty",
    "message",
    section("x"),
    section(""),
    "/text/text",
    "must be more than 0 characters",
  ],
  [
    "section fields 10",
    "message",
    { type: "section", fields: Array(10).fill(plain(1)) },
    { type: "section", fields: Array(11).fill(plain(1)) },
    "/fields",
    "no more than 10 items allowed",
  ],
  [
    "section field 2000",
    "message",
    { type: "section", fields: [plain(2000)] },
    { type: "section", fields: [plain(2001)] },
    "/fields/0/text",
    "must be less than 2001 characters",
  ],
  [
    "header 150",
    "message",
    { type: "header", text: plain(150) },
    { type: "header", text: plain(151) },
    "/text/text",
    "must be less than 151 characters",
  ],
  [
    "context 10",
    "message",
    { type: "context", elements: Array(10).fill(plain(1)) },
    { type: "context", elements: Array(11).fill(plain(1)) },
    "/elements",
    "no more than 10 items allowed",
  ],
  [
    "actions 25",
    "message",
    { type: "actions", elements: Array.from({ length: 25 }, (_, i) => press({ action_id: `a${i}` })) },
    { type: "actions", elements: Array.from({ length: 26 }, (_, i) => press({ action_id: `a${i}` })) },
    "/elements",
    "no more than 25 items allowed",
  ],
  [
    "button text 75",
    "message",
    inActions(press({ text: plain(75) })),
    inActions(press({ text: plain(76) })),
    "/elements/0/text/text",
    "must be less than 76 characters",
  ],
  [
    "button value 2000",
    "message",
    inActions(press({ value: x(2000) })),
    inActions(press({ value: x(2001) })),
    "/elements/0/value",
    "must be less than 2001 characters",
  ],
  [
    "button url 3000",
    "message",
    inActions(press({ url: `https://${x(2992)}` })),
    inActions(press({ url: `https://${x(2993)}` })),
    "/elements/0/url",
    "must be less than 3001 characters",
  ],
  [
    "accessibility label 75",
    "message",
    inActions(press({ accessibility_label: x(75) })),
    inActions(press({ accessibility_label: x(76) })),
    "/elements/0/accessibility_label",
    "must be less than 76 characters",
  ],
  [
    "action id 255",
    "message",
    inActions(press({ action_id: x(255) })),
    inActions(press({ action_id: x(256) })),
    "/elements/0/action_id",
    "must be less than 256 characters",
  ],
  [
    "block id 255",
    "message",
    { ...section("a"), block_id: x(255) },
    { ...section("a"), block_id: x(256) },
    "/block_id",
    "must be less than 256 characters",
  ],
  [
    "confirm title 100",
    "message",
    inActions(press({ confirm: { title: plain(100), text: plain(1) } })),
    inActions(press({ confirm: { title: plain(101), text: plain(1) } })),
    "/elements/0/confirm/title/text",
    "must be less than 101 characters",
  ],
  [
    "confirm text 300",
    "message",
    inActions(press({ confirm: { text: plain(300) } })),
    inActions(press({ confirm: { text: plain(301) } })),
    "/elements/0/confirm/text/text",
    "must be less than 301 characters",
  ],
  [
    "confirm button 30",
    "message",
    inActions(press({ confirm: { text: plain(1), confirm: plain(30) } })),
    inActions(press({ confirm: { text: plain(1), confirm: plain(31) } })),
    "/elements/0/confirm/confirm/text",
    "must be less than 31 characters",
  ],
  [
    "select options 100",
    "message",
    inActions({ type: "static_select", action_id: "s", options: options(100) }),
    inActions({ type: "static_select", action_id: "s", options: options(101) }),
    "/elements/0/options",
    "no more than 100 items allowed",
  ],
  [
    "select without options",
    "message",
    inActions({ type: "static_select", action_id: "s", options: options(1) }),
    inActions({ type: "static_select", action_id: "s", options: [] }),
    "/elements/0/options",
    "must provide at least 1 items",
  ],
  [
    "option text 75",
    "message",
    inActions({ type: "static_select", action_id: "s", options: [option(75)] }),
    inActions({ type: "static_select", action_id: "s", options: [option(76)] }),
    "/elements/0/options/0/text/text",
    "must be less than 76 characters",
  ],
  [
    "radio buttons 10",
    "message",
    inActions({ type: "radio_buttons", action_id: "s", options: options(10) }),
    inActions({ type: "radio_buttons", action_id: "s", options: options(11) }),
    "/elements/0/options",
    "no more than 10 items allowed",
  ],
  [
    "checkboxes 10",
    "message",
    inActions({ type: "checkboxes", action_id: "s", options: options(10) }),
    inActions({ type: "checkboxes", action_id: "s", options: options(11) }),
    "/elements/0/options",
    "no more than 10 items allowed",
  ],
  [
    "overflow 5",
    "message",
    inActions({ type: "overflow", action_id: "s", options: options(5) }),
    inActions({ type: "overflow", action_id: "s", options: options(6) }),
    "/elements/0/options",
    "no more than 5 items allowed",
  ],
  [
    "placeholder 150",
    "message",
    inActions({ type: "users_select", action_id: "s", placeholder: plain(150) }),
    inActions({ type: "users_select", action_id: "s", placeholder: plain(151) }),
    "/elements/0/placeholder/text",
    "must be less than 151 characters",
  ],
  [
    "image alt text 2000",
    "message",
    { type: "image", image_url: "https://x.example/a.png", alt_text: x(2000) },
    { type: "image", image_url: "https://x.example/a.png", alt_text: x(2001) },
    "/alt_text",
    "must be less than 2001 characters",
  ],
  [
    "markdown 12,000",
    "message",
    { type: "markdown", text: x(12_000) },
    { type: "markdown", text: x(12_001) },
    "/text",
    "must be less than 12001 characters",
  ],
  [
    "table 20 columns",
    "message",
    { type: "table", rows: [Array(20).fill({ type: "raw_text", text: "a" })] },
    { type: "table", rows: [Array(21).fill({ type: "raw_text", text: "a" })] },
    "/rows/0",
    "no more than 20 items allowed",
  ],
  [
    "table 100 rows",
    "message",
    { type: "table", rows: Array(100).fill([{ type: "raw_text", text: "a" }]) },
    { type: "table", rows: Array(101).fill([{ type: "raw_text", text: "a" }]) },
    "/rows",
    "no more than 100 items allowed",
  ],
  [
    "context_actions 5",
    "message",
    {
      type: "context_actions",
      elements: Array.from({ length: 5 }, (_, i) => ({
        type: "icon_button",
        icon: "trash",
        text: plain(1),
        action_id: `a${i}`,
      })),
    },
    {
      type: "context_actions",
      elements: Array.from({ length: 6 }, (_, i) => ({
        type: "icon_button",
        icon: "trash",
        text: plain(1),
        action_id: `a${i}`,
      })),
    },
    "/elements",
    "no more than 5 items allowed",
  ],
  [
    "alert 200 in a modal",
    "modal",
    { type: "alert", text: plain(200) },
    { type: "alert", text: plain(201) },
    "/text/text",
    "must be less than 201 characters",
  ],
  [
    "input label 2000",
    "modal",
    asInput({ type: "plain_text_input" }, { label: plain(2000) }),
    asInput({ type: "plain_text_input" }, { label: plain(2001) }),
    "/label/text",
    "must be less than 2001 characters",
  ],
  [
    "input max_length 3000",
    "modal",
    asInput({ type: "plain_text_input", max_length: 3000 }),
    asInput({ type: "plain_text_input", max_length: 3001 }),
    "/element/max_length",
    "must be less than 3001",
  ],
  [
    "task card status",
    "message",
    { type: "task_card", task_id: "t", title: "T", status: "complete" },
    { type: "task_card", task_id: "t", title: "T", status: "finished" },
    "/status",
    "must be a valid enum value",
  ],
];

describe("Block Kit limits", () => {
  test.each(LIMITS)("10 %s holds exactly", (_name, surface, allowed, tooMuch, pointer, words) => {
    expect(checkBlocks([allowed], surface, "/blocks")).toEqual([]);
    const problems = checkBlocks([tooMuch], surface, "/blocks").map(sentence);
    expect(
      problems.some((p) => p.startsWith(words) && p.endsWith(`[json-pointer:/blocks/0${pointer}]`)),
    ).toBe(true);
  });

  test("10 more than 50 blocks, or a section that is too long, is invalid_blocks with errors and marked messages", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    const many = await refused(
      chat.postMessage({
        channel: "C_TICK",
        text: "x",
        blocks: Array.from({ length: 51 }, () => section("a")),
      }),
    );
    expect(many).toMatchObject({
      error: "invalid_blocks",
      errors: ["no more than 50 items allowed [json-pointer:/blocks]"],
      response_metadata: { messages: ["[ERROR] no more than 50 items allowed [json-pointer:/blocks]"] },
    });
    const long = await refused(
      chat.postMessage({ channel: "C_TICK", text: "x", blocks: [section(x(3001))] }),
    );
    expect(long.errors).toEqual([
      "failed to match all allowed schemas [json-pointer:/blocks/0/text]",
      "must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
    ]);
    expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(0);
    const notAList = await refused(
      chat.postMessage({ channel: "C_TICK", text: "x", blocks: { type: "section" } as never }),
    );
    expect(notAList.error).toBe("invalid_blocks_format");
  });

  test("10 an update and an ephemeral are checked like a post", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    const { ts } = await chat.postMessage({ channel: "C_TICK", text: "x" });
    const blocks = [{ type: "header", text: { type: "plain_text", text: x(151) } }] as never;
    expect((await refused(chat.update({ channel: "C_TICK", ts: ts ?? "", text: "x", blocks }))).error).toBe(
      "invalid_blocks",
    );
    expect(
      (await refused(chat.postEphemeral({ channel: "C_TICK", user: "U_AGENT", text: "x", blocks }))).error,
    ).toBe("invalid_blocks");
  });

  test("11 one action id twice in a block, or one block id twice in a message, is refused; the same action id in two blocks is not", () => {
    const twice = { type: "actions", elements: [press(), press()] };
    expect(checkBlocks([twice], "message", "/blocks").map(sentence)).toEqual([
      '`action_id` "a" already exists [json-pointer:/blocks/0/elements/1/action_id]',
    ]);
    const sameBlock = [
      { ...section("a"), block_id: "b" },
      { ...section("b"), block_id: "b" },
    ];
    expect(checkBlocks(sameBlock, "message", "/blocks").map(sentence)).toEqual([
      '`block_id` "b" already exists [json-pointer:/blocks/1/block_id]',
    ]);
    expect(checkBlocks([inActions(press()), inActions(press())], "message", "/blocks")).toEqual([]);
  });

  test("12 an unknown block, an alert or an input in a message is an unsupported type", async () => {
    const sb = await sandbox();
    for (const block of [
      { type: "hologram" },
      { type: "alert", text: plain(5) },
      asInput({ type: "plain_text_input" }),
    ]) {
      const answer = await refused(
        web(sb).chat.postMessage({ channel: "C_TICK", text: "x", blocks: [block as never] }),
      );
      expect(answer.error).toBe("invalid_blocks");
      expect(answer.errors).toEqual([
        `unsupported type: ${(block as { type: string }).type} [json-pointer:/blocks/0/type]`,
      ]);
    }
  });

  test("10 a button's url and a picture's must be urls; only one table, one focus and 12,000 characters of markdown in all", () => {
    const words = (blocks: object[], surface: Surface = "message"): string[] =>
      checkBlocks(blocks, surface, "/blocks").map(sentence);
    expect(words([inActions(press({ url: "click here" }))])).toEqual([
      "must be a valid url [json-pointer:/blocks/0/elements/0/url]",
    ]);
    expect(words([{ type: "image", image_url: "javascript:alert(1)", alt_text: "x" }])).toEqual([
      "must be a valid url [json-pointer:/blocks/0/image_url]",
    ]);
    const table = { type: "table", rows: [[{ type: "raw_text", text: "a" }]] };
    expect(words([table, table])).toEqual(["only one table allowed [json-pointer:/blocks]"]);
    const half = { type: "markdown", text: x(6_001) };
    expect(words([half, half])).toHaveLength(1);
    const focused = asInput({ type: "plain_text_input", focus_on_load: true });
    expect(words([focused, focused], "modal")).toEqual([
      "`focus_on_load` can only be set to true on one element [json-pointer:/blocks/1/element/focus_on_load]",
    ]);
  });

  test("10 what stands in an input first is one of its options to the letter, a day that there is, a number within bounds", () => {
    const words = (element: object): string[] =>
      checkBlocks([asInput(element)], "modal", "/blocks").map(sentence);
    const choice = (type: string, initial: object): object => ({ type, options: options(2), ...initial });
    const renamed = { text: plain(2), value: "v1" };
    expect(words(choice("static_select", { initial_option: option(1, 1) }))).toEqual([]);
    expect(words(choice("static_select", { initial_option: renamed }))).toEqual([
      "`initial_option` must be one of the options [json-pointer:/blocks/0/element/initial_option]",
    ]);
    expect(words(choice("radio_buttons", { initial_option: renamed }))).toHaveLength(1);
    expect(words(choice("checkboxes", { initial_options: [option(1, 0), renamed] }))).toHaveLength(1);
    expect(words({ type: "datepicker", initial_date: "2028-02-29" })).toEqual([]);
    for (const day of ["2026-02-29", "2026-13-01", "2026-1-1", "tomorrow"]) {
      expect(words({ type: "datepicker", initial_date: day })).toEqual([
        "must be a date of the form YYYY-MM-DD [json-pointer:/blocks/0/element/initial_date]",
      ]);
    }
    const number = (more: object): object => ({ type: "number_input", is_decimal_allowed: true, ...more });
    expect(words(number({ min_value: "-1.5", max_value: "2", initial_value: "0" }))).toEqual([]);
    expect(words(number({ min_value: "3", max_value: "2" }))).toEqual([
      "`min_value` must not be greater than `max_value` [json-pointer:/blocks/0/element/min_value]",
    ]);
    expect(words(number({ initial_value: "many" }))).toEqual([
      "must be a number [json-pointer:/blocks/0/element/initial_value]",
    ]);
  });

  test("10 blocks inside attachments are held to the same limits", async () => {
    const sb = await sandbox();
    const answer = await refused(
      web(sb).chat.postMessage({
        channel: "C_TICK",
        text: "x",
        attachments: [{ blocks: [section(x(3001))] }],
      }),
    );
    expect(answer.errors?.at(-1)).toContain("[json-pointer:/attachments/0/blocks/0/text/text]");
  });

  test("10 fields that a block does not have, and missing ones, are named", () => {
    const problems = checkBlocks(
      [{ type: "divider", text: "x" }, { type: "header" }, { type: "section" }],
      "message",
      "/blocks",
    );
    expect(problems.map(sentence)).toEqual([
      "invalid additional property: text [json-pointer:/blocks/0]",
      "missing required field: text [json-pointer:/blocks/1]",
      "must define either `text` or `fields` [json-pointer:/blocks/2]",
    ]);
  });
});

describe("view limits", () => {
  const modal = (more: object): object => ({
    type: "modal",
    title: plain(24),
    blocks: [section("a")],
    ...more,
  });
  const VIEW_LIMITS: [string, object, object, string][] = [
    ["title 24", {}, { title: plain(25) }, "must be less than 25 characters [json-pointer:/view/title/text]"],
    [
      "submit 24",
      { submit: plain(24) },
      { submit: plain(25) },
      "must be less than 25 characters [json-pointer:/view/submit/text]",
    ],
    [
      "close 24",
      { close: plain(24) },
      { close: plain(25) },
      "must be less than 25 characters [json-pointer:/view/close/text]",
    ],
    [
      "private_metadata 3000",
      { private_metadata: x(3000) },
      { private_metadata: x(3001) },
      "must be less than 3001 characters [json-pointer:/view/private_metadata]",
    ],
    [
      "callback_id 255",
      { callback_id: x(255) },
      { callback_id: x(256) },
      "must be less than 256 characters [json-pointer:/view/callback_id]",
    ],
    [
      "external_id 255",
      { external_id: x(255) },
      { external_id: x(256) },
      "must be less than 256 characters [json-pointer:/view/external_id]",
    ],
    [
      "100 blocks",
      { blocks: Array.from({ length: 100 }, () => section("a")) },
      { blocks: Array.from({ length: 101 }, () => section("a")) },
      "no more than 100 items allowed [json-pointer:/view/blocks]",
    ],
    [
      "submit with inputs",
      { submit: plain(4), blocks: [asInput({ type: "plain_text_input" })] },
      { blocks: [section("a"), asInput({ type: "plain_text_input" })] },
      "must define `submit` to use an `input` block in modals [json-pointer:/view/blocks/1/input]",
    ],
    ["no title", {}, { title: undefined }, "missing required field: title [json-pointer:/view]"],
    [
      "nothing unknown",
      {},
      { submit_disabled: true },
      "invalid additional property: submit_disabled [json-pointer:/view]",
    ],
  ];

  test.each(VIEW_LIMITS)("33 a modal's %s holds exactly", (_name, allowed, tooMuch, words) => {
    expect(checkView(modal(allowed))).toEqual([]);
    expect(checkView(modal(tooMuch)).map(sentence)).toContain(words);
  });

  test("33 a home has no title and no alert", () => {
    const home = { type: "home", blocks: [section("a")] };
    expect(checkView(home)).toEqual([]);
    expect(checkView({ ...home, title: plain(3) }).map(sentence)).toEqual([
      "invalid additional property: title [json-pointer:/view]",
    ]);
    expect(checkView({ ...home, blocks: [{ type: "alert", text: plain(3) }] }).map(sentence)).toEqual([
      "unsupported type: alert [json-pointer:/view/blocks/0/type]",
    ]);
  });
});
