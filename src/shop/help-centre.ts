/** Help-centre search: words in any form, and words with typos. */

import type { SqlRunner } from "../db/connect.js";
import { headOf } from "../domain/text/cut.js";
import { plainSpelling } from "../domain/text/references.js";

export interface HelpArticle {
  readonly slug: string;
  readonly title: string;
  readonly body: string;
}

const MAX_QUESTION_LENGTH = 500;
const MAX_ARTICLES = 3;
/** From here on two words count as the same word misspelt ("retrun" and "return" share 0.27 of their trigrams). */
const MIN_LIKENESS = 0.25;
/** A single misspelt word that fits everywhere scores less than this, and answers nothing. */
const MIN_SCORE = 0.5;

/**
 * The articles that fit the question best, at most three, best first. Each of the question's words counts once for an article:
 * with the article's word that it is (in any English form) or is spelled like, rarer words more, words of the title more.
 * The cost grows with the help centre's size, which is that of a help centre.
 */
export async function searchHelpCentre(db: SqlRunner, question: string): Promise<readonly HelpArticle[]> {
  const text = headOf(plainSpelling(question), MAX_QUESTION_LENGTH).trim();
  if (text === "") return [];
  return db.sql<HelpArticle>(
    "shop.search-help",
    `WITH asked AS (
       SELECT DISTINCT lexeme AS word FROM unnest(to_tsvector('english', $1)) WHERE length(lexeme) >= 3
     ), written AS (
       SELECT a.id, v.lexeme AS word, CASE WHEN 'A' = ANY(v.weights) THEN 1.5 ELSE 1 END AS weight
       FROM help_articles a
       CROSS JOIN LATERAL unnest(setweight(to_tsvector('english', a.title), 'A') || to_tsvector('english', a.body)) AS v
     ), rarity AS (
       SELECT word, ln(1 + (SELECT count(*) FROM help_articles)::float8 / count(*)) AS idf FROM written GROUP BY word
     ), alike AS (
       SELECT a.word AS asked, r.word, r.idf * CASE WHEN a.word = r.word THEN 1 ELSE 0.8 * similarity(a.word, r.word) END AS fit
       FROM asked a JOIN rarity r ON a.word = r.word OR similarity(a.word, r.word) >= $2
     ), fits AS (
       SELECT w.id, l.asked, max(l.fit * w.weight) AS fit FROM alike l JOIN written w ON w.word = l.word GROUP BY w.id, l.asked
     )
     SELECT a.slug, a.title, a.body FROM fits f JOIN help_articles a ON a.id = f.id
     GROUP BY a.id HAVING sum(f.fit) >= $3 ORDER BY sum(f.fit) DESC, a.slug LIMIT $4`,
    [text, MIN_LIKENESS, MIN_SCORE, MAX_ARTICLES],
  );
}
