/** The elements of a rich_text block. */
import { bool, byType, type Check, int, list, object, oneOf, str } from "./check.js";

const style: Check = object({
  optional: { bold: bool, italic: bool, strike: bool, code: bool, underline: bool },
});
const styled = { style };

const INLINE = byType({
  text: object({
    required: { type: oneOf("text"), text: str(Number.POSITIVE_INFINITY, 1) },
    optional: styled,
  }),
  link: object({
    required: { type: oneOf("link"), url: str(3000, 1) },
    optional: { text: str(), unsafe: bool, ...styled },
  }),
  user: object({ required: { type: oneOf("user"), user_id: str(255, 1) }, optional: styled }),
  usergroup: object({ required: { type: oneOf("usergroup"), usergroup_id: str(255, 1) }, optional: styled }),
  channel: object({ required: { type: oneOf("channel"), channel_id: str(255, 1) }, optional: styled }),
  team: object({ required: { type: oneOf("team"), team_id: str(255, 1) }, optional: styled }),
  emoji: object({
    required: { type: oneOf("emoji"), name: str(255, 1) },
    optional: { unicode: str(), url: str(), ...styled },
  }),
  broadcast: object({
    required: { type: oneOf("broadcast"), range: oneOf("here", "channel", "everyone") },
    optional: styled,
  }),
  color: object({ required: { type: oneOf("color"), value: str(7, 1) }, optional: styled }),
  date: object({
    required: { type: oneOf("date"), timestamp: int(0, 9_999_999_999), format: str(3000, 1) },
    optional: { url: str(3000), fallback: str(3000), ...styled },
  }),
});

const border = { border: int(0, 1) };

const section: Check = object({
  required: { type: oneOf("rich_text_section"), elements: list(INLINE, 1000) },
});

export const RICH_TEXT_ELEMENTS: Record<string, Check> = {
  rich_text_section: section,
  rich_text_list: object({
    required: {
      type: oneOf("rich_text_list"),
      style: oneOf("bullet", "ordered"),
      elements: list(section, 1000),
    },
    optional: { indent: int(0, 8), offset: int(0, 1_000_000), ...border },
  }),
  rich_text_quote: object({
    required: { type: oneOf("rich_text_quote"), elements: list(INLINE, 1000) },
    optional: border,
  }),
  rich_text_preformatted: object({
    required: { type: oneOf("rich_text_preformatted"), elements: list(INLINE, 1000) },
    optional: { ...border, language: str(100) },
  }),
};
