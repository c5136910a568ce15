/**
 * Words that a planner wrote, or that somebody put into the shop's data, on their way to people: without the addresses that they
 * name. Whoever plants a text in a ticket, an article or a name wants a mail address, a link or an account to come out of it again.
 */
import { clean } from "./safe.js";

export const ADDRESS_MARK = "[address left out]";

const DOT = "[.．。｡]";
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?`;
/** Endings that a bare name needs to be taken for a host: "Done.Thanks" is none. */
const ENDINGS =
  "com|net|org|info|biz|example|test|io|co|app|dev|ai|me|tv|xyz|site|online|shop|store|top|club|link|click|live|page|eu|uk|de|fr|es|it|nl|pl|ru|cn|jp|kr|in|br|us|ca|au|ch|at";
const MAIL = new RegExp(
  String.raw`[\p{L}\p{N}._%+'-]{1,64}\s?[@＠]\s?${LABEL}(?:${DOT}${LABEL}){1,6}`,
  "giu",
);
const LINK = /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>)\]]+|\b(?:mailto|tel|javascript|data):[^\s"'<>)\]]+/giu;
const HOST = new RegExp(
  String.raw`(?<![\p{L}\p{N}_-])(?:${LABEL}${DOT}){1,6}(?:${ENDINGS})(?![\p{L}\p{N}_-])(?:[/?#][^\s"'<>)\]]*)?`,
  "giu",
);
/** An account as banks write them: country, two digits, at least eleven more. */
const ACCOUNT = /\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b/gu;
const SHORTEST_ACCOUNT = 15;

/** The text, cleaned, with a mark where a mail address, a link, a host or a bank account stood. */
export function withoutAddresses(text: string): string {
  return clean(text)
    .replace(LINK, ADDRESS_MARK)
    .replace(MAIL, ADDRESS_MARK)
    .replace(HOST, ADDRESS_MARK)
    .replace(ACCOUNT, (account) =>
      account.replaceAll(" ", "").length < SHORTEST_ACCOUNT ? account : ADDRESS_MARK,
    );
}
