/** Which of the articles that were found answers the ticket's question, if any. Pure. */
import { plainSpelling } from "../../domain/text/references.js";
import type { SeenHelp } from "./scripted-reading.js";

type Article = SeenHelp["articles"][number];

/** Words of questions and of politeness: an article that shares only these says nothing about what is asked. */
const EMPTY_WORDS = new Set(
  (
    "about after again all also and any anybody anyone are ask asked asks before but can cannot could customer did does doing don for from " +
    "get gets give had has have hello hey her his how into its just know let like may might much must need needs not now our please " +
    "she should some still tell than thank thanks that the their them then there these they this those wants want was were what when where " +
    "which who whom whose why will with would you your"
  ).split(" "),
);
/** English endings come behind these letters: "change", "changing". */
const STEM_LETTERS = 5;

/**
 * The article about the same thing as the question: it holds more than half of the question's words of meaning, or the question holds all
 * of its title's (two or more). One shared word is no answer: "change my password" and "Changing the delivery address".
 */
export function answering(question: string, articles: readonly Article[]): Article | null {
  const asked = stems(question);
  const ranked = articles
    .map((article) => ({ article, shared: shared(asked, stems(`${article.title} ${article.body}`)) }))
    .sort((a, b) => b.shared - a.shared);
  const best = ranked.find(
    ({ article, shared: share }) => share > asked.size / 2 || holdsTitle(asked, stems(article.title)),
  );
  return best?.article ?? null;
}

const holdsTitle = (asked: ReadonlySet<string>, title: ReadonlySet<string>): boolean =>
  title.size >= 2 && shared(title, asked) === title.size;

const shared = (some: ReadonlySet<string>, others: ReadonlySet<string>): number =>
  [...some].filter((stem) => others.has(stem)).length;

/** Words of three letters or more, without the empty ones, each by its stem. References and numbers are none. */
function stems(text: string): Set<string> {
  const words =
    plainSpelling(text)
      .toLowerCase()
      .match(/[\p{L}\p{N}_-]{3,}/gu) ?? [];
  return new Set(
    words
      .filter((word) => !/\d/.test(word))
      .flatMap((word) => word.split(/[-_]/))
      .filter((word) => word.length >= 3 && !EMPTY_WORDS.has(word))
      .map((word) => word.replace(/s$/, "").slice(0, STEM_LETTERS)),
  );
}
