/** What a ticket's words ask for, by simple rules. Pure; knows nothing of the shop. */
import { findReferences, plainSpelling } from "../../domain/text/references.js";
import { type NamedAmount, readAmounts, withoutAmounts } from "./scripted-amounts.js";
import type { Doubt } from "./scripted-doubts.js";

export interface Wishes {
  complaint: boolean;
  refund: boolean;
  cancelOrder: boolean;
  cancelSubscription: boolean;
  atPeriodEnd: boolean;
  /** Money is wanted back for a subscription, and not on an order that is named there. */
  refundSubscription: boolean;
  whereIsIt: boolean;
  chargedTwice: boolean;
  /** "in full", "everything", "all of it" */
  everything: boolean;
  /** What is to be refunded by its name, and is not the order itself: "the gloves"; null: nothing is named. */
  thing: string | null;
  /** "£20.00 each" */
  each: boolean;
  /** Set where amounts cannot be told apart by order. */
  unclearAmounts: boolean;
  /** Distinct amounts of money in the text. */
  amounts: readonly NamedAmount[];
  /** Numbers that may be amounts and cannot be read as one. */
  doubts: readonly Doubt[];
  /** Words that look like references, in capitals. */
  references: readonly string[];
  emails: readonly string[];
  text: string;
}

const COMPLAINT =
  /\b(formal(?:ly)? complain\w*|formal complaint|official complaint|lawyer|solicitor|legal action|ombudsman|sue|court|injur\w+|press enquiry|journalist)\b/i;
const REFUND =
  /\b(refund\w*|reimburse\w*|money back|cash back|(?:pay|give|send) (?:it |that |them )?back)\b/i;
const AMOUNT_BACK =
  /(?:[£$€¥]\s?\d[\d.,]*|\d[\d.,]*\s?(?:GBP|USD|EUR|JPY|pounds?|dollars?|euros?|yen))\s+back\b/i;
const NO_REFUND =
  /\b(?:no|not|never|nobody|don'?t|doesn'?t|does not|do not|without|stop|refus\w+|declin\w+|reject\w+|instead of|rather than)\b(?:\s+\w+){0,3}\s+(?:a\s+|any\s+|the\s+)?(?:refund\w*|money back)\b/i;
/** What happened already, and talk about refunds, ask for none. */
const PAST_REFUND =
  /\b(?:has|have|had|was|were|been|got|is|are|being)(?:\s(?!\w*refund)[\w-]+){0,2}\s(?:been\s)?refunded\b|\brefund\w*\s(?:on [\w-]+\s|of [\w-]+\s|for [\w-]+\s)?(?:was|has|had|came|arrived|went|polic(?:y|ies)|rules?|process|status|possible)\b|\b(?:refunds?|refundable)\s?\?|\b(?:refund\w*\s)?(?:polic(?:y|ies)|rules?) (?:on|for|about) refunds?\b/gi;
/** "refund the gloves", but not "refund the order". */
const THING =
  /\brefund(?:ed|ing)?\s(?:only\s|just\s)?(?:for\s)?(?:the|my|his|her|their|its|an?|these|those)\s((?:[\p{L}'-]{3,}\s?){1,3})/iu;
const ORDER_ITSELF =
  /^(?:(?:torn|broken|damaged|faulty|late|lost|missing|wrong|whole|full|entire|complete|remaining|unused|cancelled|returned|original|first|last|delivered)\s)*(?:orders?|purchase|payment|money|amount|sum|rest|remainder|balance|lot|total|customer|client|buyer|lady|man|woman|gentleman|parcel|package|delivery|shipment|items|goods|things|price|cost|ones?|ord|full|whole|everything|remaining|entire)\b/i;
/** "wants all of ORD-1002 back", but not "wants a call back". */
const WANTS_BACK =
  /\b(?:wants?|would like|asks? for)\b(?:(?!\b(?:calls?|called|ring|phoned?|writes?|hears?|comes?|goes|go)\b).){0,60}?\bback\b/i;
/** A wish, not what has happened already: "was cancelled" asks for nothing. */
const CANCEL =
  /(?<!\b(?:was|were|is|are|been|already|got|gets|being) )\b(cancel\w*|call(?:ed)? off|stop the order)\b/i;
const SUBSCRIPTION = /\b(subscription|membership|SUB-\w+)\b/i;
const PERIOD_END =
  /\bend of (?:the |its |this |their )?(?:paid |billing |current )?(?:period|month|year|term)\b|\bruns? out\b/i;
const WHERE =
  /\b(where(?:'s| is| are)?\b.{0,60}\b(?:parcel|package|order|delivery|it|shipment|[a-z]{1,12}-?\d[\w-]*)|track(?:ing)?|has(?:n'?t| not) arrived|not (?:yet )?arrived|when will .{0,40}(?:arrive|come|be delivered)|shipping status|delivery status|still waiting for)\b/i;
const TWICE = /\b(charged twice|double charge\w*|duplicate charge\w*|billed twice|paid twice|two charges)\b/i;
const EVERYTHING =
  /\b(in full|full (?:refund|amount)|fully|everything|all of (?:it|them|ORD\S*|[A-Z]+-\S+)|the (?:whole|entire) (?:order|amount|sum)|whatever is left|all that is left|the rest)\b/i;

/** A reference without a digit, where its beginning says that it is one. */
const NAMED =
  /\b(?:ORD|ORDER|SUB)-[A-Z0-9]{2,32}(?:-[A-Z0-9]{1,32}){0,4}\b/gu; /** "Refund 20" names no order REFUND-20. */
const PLAIN =
  /^(?:REFUND|REIMBURSE|PAY|GIVE|SEND|BACK|OF|FOR|BY|TO|ON|WITH|ONLY|JUST|MINUS|ABOUT|IS|AND|THE|PLEASE)-/;

/** "cancel the order", "and order X": what is to be cancelled where a subscription is, too. The word behind may be a reference. */
const CANCEL_WHAT =
  /\b(?:cancel\w*|call(?:ed)? off)\s(?:(?:the|my|his|her|their|this|that|both|also|whole|entire)\s)*([\w-]+)|(?:\band|\balso|\bplus|\bas well as|&)\s(?:(?:the|my|his|her|their|this|that|also|cancel)\s)*([\w-]+)(?=\s(?:please|too|as well|both|[A-Z]{1,12}-\w)|\s*[,.;!?]|\s*$)/giu;
const SENTENCES = /[.;!?](?=\s|$)|\n/u;

/**
 * Whether an order is to be cancelled beside a subscription. An order that is named in another sentence, or in an answer, says whom it is
 * about: that is no wish to cancel it.
 */
function namesOrderToCancel(text: string, orders: readonly string[]): boolean {
  const isOrder = (word: string | undefined): boolean =>
    word !== undefined && (/^orders?$/iu.test(word) || orders.includes(word.toUpperCase()));
  return text
    .split(SENTENCES)
    .filter((sentence) => CANCEL.test(sentence))
    .some((sentence) =>
      [...sentence.matchAll(CANCEL_WHAT)].some(([, object, further]) => isOrder(object) || isOrder(further)),
    );
}

/** A sentence that wants money back and speaks of a subscription and of no order: an order named elsewhere is not what was paid for. */
function wantsSubscriptionRefunded(wished: string, orders: readonly string[]): boolean {
  return wished
    .split(SENTENCES)
    .filter((sentence) => [REFUND, AMOUNT_BACK, WANTS_BACK].some((wish) => wish.test(sentence)))
    .some(
      (sentence) =>
        SUBSCRIPTION.test(sentence) && !orders.some((ref) => sentence.toUpperCase().includes(ref)),
    );
}

/** "5²" is no 52: what only looks like a digit stays apart from the digits. */
const apart = (raw: string): string => raw.replace(/\p{No}/gu, "^$&");

/** Not of a subscription, a customer or a ticket. */
export const isOrderLike = (reference: string): boolean => !/^(?:SUB|CUS|TCK)-/.test(reference);

export function readWishes(raw: string): Wishes {
  const text = plainSpelling(apart(raw));
  const wished = text.replace(PAST_REFUND, " ; ");
  const thing = THING.exec(text)?.[1]?.trim() ?? "";
  const { emails, lookalikes } = findReferences(text);
  const { candidates } = findReferences(withoutAmounts(text));
  const cancels = CANCEL.test(text);
  const aboutSubscription = SUBSCRIPTION.test(text);
  const spelled = candidates.filter((word) => /^[A-Z]{1,12}-\d[A-Z0-9-]*$/.test(word) && !PLAIN.test(word));
  const named = [...lookalikes, ...(text.match(NAMED) ?? [])];
  const references = [...new Set(named.length === 0 ? spelled : named)];
  const orders = references.filter(isOrderLike);
  return {
    complaint: COMPLAINT.test(text),
    refund:
      (REFUND.test(wished) || AMOUNT_BACK.test(wished) || WANTS_BACK.test(wished)) && !NO_REFUND.test(wished),
    cancelOrder: cancels && (!aboutSubscription || namesOrderToCancel(text, orders)),
    cancelSubscription: cancels && aboutSubscription,
    atPeriodEnd: PERIOD_END.test(text),
    refundSubscription: wantsSubscriptionRefunded(wished, orders),
    whereIsIt: WHERE.test(text),
    chargedTwice: TWICE.test(text),
    everything: EVERYTHING.test(text),
    thing: thing === "" || ORDER_ITSELF.test(thing) || /\d/.test(thing) ? null : thing,
    each: /\b(?:each|apiece|per order|on both|for both)\b/i.test(text),
    unclearAmounts: false,
    ...readAmounts(text, references),
    references,
    emails,
    text,
  };
}
