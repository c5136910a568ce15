/**
 * Slack's limits, in one table. Lengths are characters (UTF-16 units here, so never above Slack's own count); sizes are counts.
 * Source: @slack/types 3.2 declarations and docs.slack.dev/reference/block-kit, read 2026-11.
 */
export const LIMITS = {
  blocksPerMessage: 50,
  blocksPerView: 100,
  blockId: 255,
  actionId: 255,
  sectionText: 3000,
  sectionFields: 10,
  fieldText: 2000,
  headerText: 150,
  contextElements: 10,
  actionsElements: 25,
  buttonText: 75,
  buttonValue: 2000,
  accessibilityLabel: 75,
  optionText: 75,
  selectOptions: 100,
  placeholder: 150,
  inputLabel: 2000,
  inputHint: 2000,
  inputMax: 3000,
  confirmTitle: 100,
  confirmText: 300,
  confirmButton: 30,
  viewTitle: 24,
  viewSubmit: 24,
  privateMetadata: 3000,
  /** `chat.update` refuses more than 4000; below it by a margin for what Slack adds. */
  messageText: 3900,
} as const;

/** About one message a second and channel (docs.slack.dev/apis/web-api/rate-limits); a little slower to stay below it. */
export const POST_INTERVAL_MS = 1_050;

/** `chat.update` is tier 3, 50 a minute for the whole workspace: the live trajectory may use half of it. */
export const TRAJECTORY_UPDATE_INTERVAL_MS = 2_400;
export const DECISION_UPDATE_INTERVAL_MS = 100;

/**
 * A freeze or a thaw changes every card that waits: so many are edited at once, the others one after the other, slowly enough that
 * decisions made meanwhile reach their cards within the same 50 a minute.
 */
export const SWITCH_AT_ONCE = 20;
export const SWITCH_INTERVAL_MS = 2_000;

/** `views.publish` is tier 4, a hundred a minute: half of it for Homes that change by themselves, the rest for who opens theirs. */
export const HOME_PUBLISH_INTERVAL_MS = 1_200;

/** One run card is not edited more often than this: steps in between are merged. */
export const RUN_CARD_INTERVAL_MS = 2_000;
