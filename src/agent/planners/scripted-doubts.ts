/**
 * Words in a ticket that say how much, or of what, and that simple rules do not understand: numbers spelled out, shares, exceptions, parts
 * of an order that are none of its lines. Pure. Each is a doubt: whoever asks for a refund while there is one must be asked.
 */

/** What may say how much is meant, and is not read as an amount. */
export interface Doubt {
  /** As written: "5", "£-5.00", "half of". */
  text: string;
  kind: "no_currency" | "negative" | "unreadable" | "narrowed" | "only" | "no_wish";
}

const ONES = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen";
const TEENS = "thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen";
const TENS = "twenty|thirty|fou?rty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|couple|few";
const NUMERAL = `(?:${ONES}|${TEENS}|${TENS}|zero|nil|nothing)`;
const NUMERALS = String.raw`\b(?:one[\s-])?${NUMERAL}(?:[\s-](?:and\s)?(?:one|${NUMERAL})){0,4}\b`;
const TIME = "(?:second|minute|min|hour|hr|day|night|week|month|year|time)s?";
/** What a number counts without saying how much is meant. */
const COUNTED =
  "(?:big|small|large|deep)?\\s?(?:holes|tears|rips|scratches|stains|marks|dents|cracks|sleeves|people|customers|colleagues|calls|e-?mails|messages|parcels|boxes|tickets)";

/** Number words that are clearly no amount: "two weeks late", "with two holes". */
export const COUNTS_SOMETHING = new RegExp(
  String.raw`${NUMERALS}(?:(?:\s?-\s?|\s(?:to|or)\s)${NUMERAL})?[\s-](?:(?:working|business|calendar|whole|full|more)\s)?(?:${TIME}|${COUNTED})\b`,
  "giu",
);

const CURRENCY_WORD = String.raw`\b(?:pounds?|quid|dollars?|bucks|euros?|yen|pence|penn(?:y|ies)|cents?|percent(?:age)?|per cent|fivers?|tenners?|grand|p&p|(?:GBP|USD|EUR|JPY)(?=\s|$|[.,;!?]))\b`;
const SHARE = String.raw`\bhal(?:f|ves)\b(?:\sof\b)?|\b(?:a|one|two|three)[\s-](?:third|quarter|fifth|tenth)s?\b|\b(?:thirds|quarters|fifths)\b|\bpart\s(?:of\b|the\b|back\b|(?:a\s)?refund)|\b(?:a\s)?partial(?:ly)?\b|\b(?:some|most|bits?|portions?|pieces?|shares?|fractions?|a little)\s(?:of|on|from|back)\b`;
const EXCEPT = String.raw`\b(?:except(?:ing)?|exclud\w+|excl\.|apart from|aside from|other than|besides|save for|not including|but (?:not|without)|(?:all|everything|anything) but|without (?:the|its|his|her|their|my)|leav(?:e|ing) out|keep(?:s|ing)? (?:the|his|her|their|my|one))\b`;
const WHICH = String.raw`\b(?:one|each|any|either) of (?:the|its|these|those|his|her|their|my|them)\b|\b(?:first|second|third|fourth|last|other|cheaper|cheapest|dearer|dearest) (?:item|line|article|product|piece|thing|position|one)s?\b`;
const PART =
  "(?:shipping|postage|delivery|carriage|handling|tax|taxes|vat|duty|customs|fee|fees|surcharge|difference|overcharge|overpayment|deposit|discount|interest|tip|insurance|wrapping)";
const BETWEEN =
  "(?:just|only|me|him|her|them|us|for|of|on|back|the|a|an|my|his|their|your|our|its|extra|full|price|cost|costs|charge|charges|customer)";
const OF_PART = String.raw`\b(?:refund\w*|reimburse\w*|give|send|pay)\s(?:${BETWEEN}\s){0,6}${PART}\b|\b(?:shipping|postage|delivery|carriage) (?:cost|charge|fee|price)s?\b|\b(?:postage|surcharge|overcharge\w*|overpa(?:id|y\w*)|price difference)\b`;
const NARROWED = String.raw`\b(?:only|(?:just|merely) (?:the|for|one|a)|nothing (?:but|else))\b`;

const VAGUE = String.raw`\b(?:(?:small(?:er)?|low(?:er)?|token|fair|reasonable|usual|agreed|same|goodwill)(?:\s(?:amount|sum|gesture|part|share|one))?|goodwill|pro[\s-]rata|proportion\w*|something|as (?:little|much|agreed|discussed)|up to the|what(?:ever|'s| is) (?:fair|you|right|left over))\b`;

interface Rule {
  readonly pattern: RegExp;
  readonly kind: Doubt["kind"];
  /** Counts although the ticket names one amount: it says how much of that. */
  readonly beside: boolean;
}
const rule = (pattern: string, kind: Doubt["kind"], beside: boolean): Rule => ({
  pattern: new RegExp(pattern, "giu"),
  kind,
  beside,
});

const RULES: readonly Rule[] = [
  rule(String.raw`(?:${NUMERALS}\s)?${CURRENCY_WORD}`, "unreadable", true),
  rule(SHARE, "unreadable", true),
  rule(EXCEPT, "narrowed", true),
  rule(NUMERALS, "unreadable", false),
  rule(String.raw`(?<=\brefund\s|·[\s:,]{1,3})one\b`, "unreadable", false),
  rule(WHICH, "narrowed", false),
  rule(OF_PART, "narrowed", false),
  rule(VAGUE, "unreadable", false),
  rule(NARROWED, "only", false),
];

/** $rest: the text in which all that is read already is blanked. */
export function wordDoubts(rest: string, amounts: number): Doubt[] {
  const found: Doubt[] = [];
  let left = rest.replaceAll(COUNTS_SOMETHING, (text) => "·".repeat(text.length));
  for (const { pattern, kind, beside } of RULES) {
    if (amounts === 1 && !beside) continue;
    left = left.replaceAll(pattern, (text) => {
      found.push({ text: text.slice(0, 40), kind });
      return "·".repeat(text.length);
    });
  }
  return found;
}

/** Before an amount: it is what was paid, what is not to be refunded, or a bound that it must stay below. */
const NO_WISH =
  /\b(?:paid|pay(?:s|ing)? for|costs?|costing|worth|priced?(?: (?:at|of|was|is))?|total(?:l?ed|l?ing)?(?: (?:of|was|is))?|charged|spent|value[ds]?(?: (?:at|of))?|was|were|not|never|but|except(?: for)?|exclud\w+|excl\.?|apart from|without|if|unless|under|below|less than|fewer than|half(?: of)?|keep(?:s|ing)?)\s+(?:(?:the|a|an|my|his|her|their|about|around|only|just|it is|it was|he paid|she paid|they paid|i paid)\s+){0,3}$/iu;

/** Why an amount that these words stand before is none that is asked for; null: nothing speaks against it. */
export const notAskedFor = (before: string): string | null => NO_WISH.exec(before)?.[0] ?? null;
