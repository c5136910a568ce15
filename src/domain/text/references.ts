/**
 * References in the text of a ticket: e-mail addresses, and words that may name an order or a subscription. Pure: whether a
 * word names anything is the shop's to say. Nothing is guessed here, only spelled in the ways people type it.
 *
 * Takes plain text (`plainSlackText`), and all of it: its length is bounded where it comes in (`takeText`), and each word spells a few
 * candidates at most.
 */
const MAX_REFERENCE_LENGTH = 64;

export interface TextReferences {
  /** Lower-cased, in the order of appearance, each once. */
  readonly emails: readonly string[];
  /** Spellings under which an order or subscription may be stored, in the order of appearance, each once. */
  readonly candidates: readonly string[];
  /** Words that look like a reference to an order ("ORD-999"), upper-cased: for saying which one was not found. */
  readonly lookalikes: readonly string[];
}

/** Every repetition is bounded: a wall of text costs no more than its length. */
const EMAIL =
  /[\p{L}\p{N}._%+'-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}\p{L}{2,24}/gu;
const WORD = /#?[\p{L}\p{N}][\p{L}\p{N}_./-]*/gu;
const LOOKALIKE = /^(?=.*\d)[A-Z]{1,12}-[A-Z0-9]+(?:-[A-Z0-9]+)*$/;

/** Finds the references in plain text. */
export function findReferences(text: string): TextReferences {
  const clean = plainSpelling(text);
  const emails = new Set<string>();
  const rest = clean.replace(EMAIL, (address) => {
    emails.add(normalEmail(address.replace(/^['._%+-]+/, "")));
    return " ";
  });
  const words = (rest.match(WORD) ?? []).map(trimmed).flatMap(withParts);
  const candidates = new Set<string>();
  const lookalikes = new Set<string>();
  words.forEach((word, index) => {
    for (const spelling of spellings(word, words[index + 1])) {
      candidates.add(spelling);
    }
    const upper = word.toUpperCase().replace(/^#/, "");
    if (upper.length <= MAX_REFERENCE_LENGTH && LOOKALIKE.test(upper)) lookalikes.add(upper);
  });
  return { emails: [...emails], candidates: [...candidates], lookalikes: [...lookalikes] };
}

/** Spellings under which a reference that somebody typed may be stored; for looking up one reference. */
export function referenceSpellings(typed: string): readonly string[] {
  const whole = trimmed(plainSpelling(typed).replace(/^[\s"'`([{<]+|[\s"'`)\]}>,.:;!?]+$/g, ""));
  if (whole === "" || whole.length > MAX_REFERENCE_LENGTH) return [];
  const [first = "", second] = whole.split(/\s+/);
  return [...new Set([whole, whole.toUpperCase(), ...spellings(first, second)])];
}

/** The form in which e-mail addresses are compared. */
export const normalEmail = (email: string): string => email.normalize("NFKC").trim().toLowerCase();

/**
 * Full-width forms, typographic dashes and quotes, exotic spaces and invisible characters in their plain form. What looks
 * the same to a person is the same here.
 */
export function plainSpelling(text: string): string {
  return text
    .normalize("NFKC")
    .replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "")
    .replace(/[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g, "-")
    .replace(/[\u2018\u2019\u201a\u201b\u2032]/g, "'")
    .replace(/[\u201c-\u201f\u2033\u00ab\u00bb]/g, '"')
    .replace(/[^\S\n]/g, " ");
}

const trimmed = (word: string): string => word.replace(/[._/-]+$/, "");

/** "A-4471/B-9001" may be one reference or two. */
function withParts(word: string): string[] {
  return word.includes("/") ? [word, ...word.split("/").filter((part) => part !== "")] : [word];
}

/** "ord-1001", "ORD1001", "ORD 1001" and "#ORD-1001" all spell ORD-1001. Plain words without a digit spell nothing more. */
function spellings(word: string, next: string | undefined): string[] {
  if (word.length > MAX_REFERENCE_LENGTH) return [];
  const found: string[] = [];
  const add = (spelling: string): void => {
    found.push(spelling, spelling.toUpperCase());
  };
  const bare = word.replace(/^#/, "");
  if (/\d/.test(bare) || bare.includes("-")) {
    add(word);
    add(bare);
    add(`#${bare}`);
    const glued = /^(\p{L}{1,12})(\d\S*)$/u.exec(bare);
    if (glued !== null) add(`${glued[1] ?? ""}-${glued[2] ?? ""}`);
  }
  if (/^\p{L}{1,12}$/u.test(bare) && next !== undefined && /^#?\d[\p{L}\p{N}-]*$/u.test(next)) {
    add(`${bare}-${next.replace(/^#/, "")}`);
  }
  return found.filter((spelling) => spelling.length <= MAX_REFERENCE_LENGTH);
}
