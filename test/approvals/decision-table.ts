/**
 * Who may decide what, when: written by hand from CONTRACT §4 and §8 and DESIGN §7, one line a case.
 *
 * Columns: person, card, state, click, what must come of it. People, cards and states are described in
 * `decision-situations.ts`; the same lines are run against the pure decision and through the room on a real database.
 */
export const DECISION_TABLE = `
# supervisor's card, £180: who
U_SUP1     sup180   pending        approve               approved
U_SUP2     sup180   pending        approve               approved
U_BOTH     sup180   pending        approve               approved
U_ALT1     sup180   pending        approve               approved
U_FIN1     sup180   pending        approve               refused:not_in_role
U_FIN2     sup180   pending        approve               refused:not_in_role
U_ONC1     sup180   pending        approve               refused:not_in_role
U_AGENT    sup180   pending        approve               refused:is_filer
U_OTHER    sup180   pending        approve               refused:not_in_role
U_GUEST    sup180   pending        approve               refused:standing
U_BOT      sup180   pending        approve               refused:standing
U_GONE     sup180   pending        approve               refused:standing
U_INVITED  sup180   pending        approve               refused:standing
U_STRANGER sup180   pending        approve               refused:standing
U_EXTERN   sup180   pending        approve               refused:standing
U_LOST     sup180   pending        approve               refused:unreadable
U_NOGROUP  sup180   pending        approve               refused:unreadable
U_SUP1     sup180   pending        deny                  denied
U_SUP2     sup180   pending        deny                  denied
U_BOTH     sup180   pending        deny                  denied
U_FIN1     sup180   pending        deny                  refused:not_in_role
U_ONC1     sup180   pending        deny                  refused:not_in_role
U_AGENT    sup180   pending        deny                  refused:is_filer
U_OTHER    sup180   pending        deny                  refused:not_in_role
U_GUEST    sup180   pending        deny                  refused:standing
U_BOT      sup180   pending        deny                  refused:standing
U_GONE     sup180   pending        deny                  refused:standing
U_INVITED  sup180   pending        deny                  refused:standing
U_STRANGER sup180   pending        deny                  refused:standing
U_EXTERN   sup180   pending        deny                  refused:standing
U_LOST     sup180   pending        deny                  refused:unreadable
U_NOGROUP  sup180   pending        deny                  refused:unreadable

# at and above the limit of the role (£500), the order's earlier refunds counted
U_SUP1     sup500   pending        approve               approved
U_SUP1     sup501   pending        approve               refused:over_limit
U_SUP1     sup501   pending        deny                  refused:over_limit
U_BOTH     sup501   pending        approve               refused:over_limit
U_SUP1     split    pending        approve               refused:over_limit
U_SUP2     split    pending        approve               refused:over_limit
U_SUP1     splitok  pending        approve               approved
U_FIN1     sup501   pending        approve               refused:not_in_role

# a currency that the role's limit does not name: only on the last line
U_FIN1     jpy      pending        approve               recorded
U_SUP1     jpy      pending        approve               refused:not_in_role
U_SUP1     supjpy   pending        approve               refused:over_limit
U_SUP1     supjpyl  pending        approve               approved

# no money: no limit
U_SUP1     cancel   pending        approve               approved
U_SUP2     cancel   pending        deny                  denied
U_FIN1     cancel   pending        approve               refused:not_in_role
U_AGENT    cancel   pending        approve               refused:is_filer
U_SUP1     cancel   pending        deny+suggest=100      bad_suggestion
U_SUP1     subscr   pending        approve               approved
U_SUP1     subscr   pending        deny                  denied
U_ONC1     subscr   pending        deny                  refused:not_in_role

# the filer, in whatever way and at whatever amount
U_SUP1     own180   pending        approve               refused:is_filer
U_SUP1     own180   pending        deny                  refused:is_filer
U_ALT1     own180   pending        approve               refused:is_filer
U_ALT1     own180   pending        deny                  refused:is_filer
U_SUP2     own180   pending        approve               approved
U_SUP1     own60    pending        approve               refused:is_filer
U_SUP2     own60    pending        approve               approved
U_SUP1     joined   pending        approve               refused:is_filer
U_SUP2     joined   pending        approve               approved
U_SUP1     both     pending        approve               refused:is_filer
U_AGENT    both     pending        approve               refused:is_filer
U_SUP2     both     pending        approve               approved
U_SUP1     selfok   pending        approve               approved
U_SUP1     selfok   pending        deny                  denied
U_SUP1     selfwas  pending        approve               refused:is_filer
U_SUP2     selfwas  pending        approve               approved
U_SUP1     selfnow  pending        approve               refused:is_filer

# two people of finance, £800
U_FIN1     fin800   pending        approve               recorded
U_FIN2     fin800   pending        approve               recorded
U_BOTH     fin800   pending        approve               recorded
U_SUP1     fin800   pending        approve               refused:not_in_role
U_ONC1     fin800   pending        approve               refused:not_in_role
U_AGENT    fin800   pending        approve               refused:is_filer
U_FIN1     fin800   pending        deny                  denied
U_SUP1     fin800   pending        deny                  refused:not_in_role
U_FIN1     fin800   one-vote       approve               already_voted
U_FINALT   fin800   one-vote       approve               already_voted
U_FIN2     fin800   one-vote       approve               approved
U_BOTH     fin800   one-vote       approve               approved
U_SUP1     fin800   one-vote       approve               refused:not_in_role
U_AGENT    fin800   one-vote       approve               refused:is_filer
U_FIN2     fin800   one-vote       deny                  denied
U_FIN1     fin800   one-vote       deny                  denied
U_FINALT   fin800   one-vote       deny                  denied
U_SUP1     fin800   one-vote       deny                  refused:not_in_role
U_GUEST    fin800   one-vote       approve               refused:standing
U_LOST     fin800   one-vote       approve               refused:unreadable
U_FIN1     fin800   approved       approve               ended:APPROVED
U_FIN2     fin800   approved       approve               ended:APPROVED
U_BOTH     fin800   approved       approve               ended:APPROVED
U_SUP1     fin800   approved       approve               ended:APPROVED
U_FIN1     fin800   approved       deny                  denied-late
U_FIN2     fin800   approved       deny                  denied-late
U_BOTH     fin800   approved       deny                  denied-late
U_SUP1     fin800   approved       deny                  refused:not_in_role

# the amount repeated, £1,200
U_FIN1     fin1200  pending        approve               repeat_amount
U_FIN1     fin1200  pending        approve+amount=1200   recorded
U_FIN1     fin1200  pending        approve+amount=1,200.00 recorded
U_FIN1     fin1200  pending        approve+amount=£1200.00 recorded
U_FIN1     fin1200  pending        approve+amount=GBP1200 recorded
U_FIN1     fin1200  pending        approve+amount=1200.0 repeat_amount
U_FIN1     fin1200  pending        approve+amount=120    repeat_amount
U_FIN1     fin1200  pending        approve+amount=120000 repeat_amount
U_FIN1     fin1200  pending        approve+amount=-1200  repeat_amount
U_FIN1     fin1200  pending        approve+amount=1.200,00 repeat_amount
U_FIN1     fin1200  pending        approve+amount=$1200  repeat_amount
U_FIN1     fin1200  pending        approve+amount=USD1200 repeat_amount
U_FIN1     fin1200  pending        approve+amount=1e3    repeat_amount
U_FIN1     fin1200  pending        approve+amount=twelve repeat_amount
U_FIN1     fin1200  pending        deny                  denied
U_FIN2     fin1200  one-vote       approve               repeat_amount
U_FIN2     fin1200  one-vote       approve+amount=1200   approved
U_FIN1     fin1200  one-vote       approve               already_voted
U_FIN1     fin1200  one-vote       approve+amount=1200   already_voted
U_SUP1     fin1200  pending        approve+amount=1200   refused:not_in_role
U_AGENT    fin1200  pending        approve+amount=1200   refused:is_filer
U_FIN1     fin1200  approved       approve               ended:APPROVED
U_FIN1     jpy      pending        approve+amount=9899   recorded
U_SUP1     sup180   pending        approve+amount=180    approved
U_SUP1     sup180   pending        approve+amount=17     approved

# a smaller amount suggested with a no
U_SUP1     sup180   pending        deny+suggest=10000    denied
U_SUP1     sup180   pending        deny+suggest=17999    denied
U_SUP1     sup180   pending        deny+suggest=1        denied
U_SUP1     sup180   pending        deny+suggest=18000    bad_suggestion
U_SUP1     sup180   pending        deny+suggest=18001    bad_suggestion
U_SUP1     sup180   pending        deny+suggest=0        bad_suggestion
U_SUP1     sup180   pending        deny+suggest=-1       bad_suggestion
U_SUP1     subscr   pending        deny+suggest=1        bad_suggestion
U_FIN1     sup180   pending        deny+suggest=10000    refused:not_in_role
U_AGENT    sup180   pending        deny+suggest=10000    refused:is_filer
U_SUP1     sup180   denied         deny+suggest=18000    ended:DENIED

# approved, its turn not released
U_SUP1     sup180   approved       approve               ended:APPROVED
U_SUP2     sup180   approved       approve               ended:APPROVED
U_FIN1     sup180   approved       approve               ended:APPROVED
U_AGENT    sup180   approved       approve               ended:APPROVED
U_OTHER    sup180   approved       approve               ended:APPROVED
U_GUEST    sup180   approved       approve               refused:standing
U_EXTERN   sup180   approved       approve               refused:standing
U_LOST     sup180   approved       approve               refused:unreadable
U_NOGROUP  sup180   approved       approve               ended:APPROVED
U_SUP1     sup180   approved       deny                  denied-late
U_SUP2     sup180   approved       deny                  denied-late
U_FIN1     sup180   approved       deny                  refused:not_in_role
U_AGENT    sup180   approved       deny                  refused:is_filer
U_GUEST    sup180   approved       deny                  refused:standing
U_NOGROUP  sup180   approved       deny                  refused:unreadable
U_SUP1     sup180   approved       deny+suggest=10000    denied-late
U_SUP1     sup180   approved       deny+suggest=99999    bad_suggestion

# released and not sent: a no still wins
U_SUP1     sup180   released       approve               ended:RELEASED
U_SUP2     sup180   released       approve               ended:RELEASED
U_FIN1     sup180   released       approve               ended:RELEASED
U_SUP1     sup180   released       deny                  denied-late
U_SUP2     sup180   released       deny                  denied-late
U_BOTH     sup180   released       deny                  denied-late
U_FIN1     sup180   released       deny                  refused:not_in_role
U_AGENT    sup180   released       deny                  refused:is_filer
U_OTHER    sup180   released       deny                  refused:not_in_role
U_GONE     sup180   released       deny                  refused:standing
U_LOST     sup180   released       deny                  refused:unreadable
U_FIN1     fin800   released       deny                  denied-late
U_BOTH     fin800   released       deny                  denied-late
U_SUP1     fin800   released       deny                  refused:not_in_role
U_FIN1     fin1200  released       deny                  denied-late
U_SUP1     sup180   released       undo                  denied-late
U_SUP2     sup180   released       undo                  denied-late
U_FIN1     sup180   released       undo                  refused:not_in_role
U_AGENT    sup180   released       undo                  refused:is_filer
U_GUEST    sup180   released       undo                  refused:standing
U_SUP1     sup180   approved       undo                  denied-late
U_SUP1     sup180   pending        undo                  stale_card
U_FIN1     fin1200  released       undo                  denied-late

# sent: nothing stops it any more
U_SUP1     sup180   sent           approve               ended:RELEASED
U_SUP2     sup180   sent           approve               ended:RELEASED
U_SUP1     sup180   sent           deny                  already_sent
U_SUP2     sup180   sent           deny                  already_sent
U_FIN1     sup180   sent           deny                  already_sent
U_AGENT    sup180   sent           deny                  already_sent
U_GUEST    sup180   sent           deny                  refused:standing
U_LOST     sup180   sent           deny                  refused:unreadable
U_SUP1     sup180   sent           undo                  already_sent
U_SUP1     sup180   unknown        approve               ended:RELEASED
U_SUP1     sup180   unknown        deny                  already_sent
U_SUP1     sup180   unknown        undo                  already_sent
U_SUP1     sup180   quarantined    deny                  already_sent
U_SUP1     sup180   quarantined    approve               ended:RELEASED
U_SUP1     sup180   done           approve               ended:RELEASED
U_SUP1     sup180   done           deny                  already_sent
U_SUP2     sup180   done           undo                  already_sent
U_FIN1     fin800   done           deny                  already_sent
U_FIN2     fin800   done           approve               ended:RELEASED

# ends without an effect: an honest answer, and nothing changes
U_SUP1     sup180   denied         approve               ended:DENIED
U_SUP2     sup180   denied         approve               ended:DENIED
U_SUP2     sup180   denied         deny                  ended:DENIED
U_FIN1     sup180   denied         approve               ended:DENIED
U_AGENT    sup180   denied         approve               ended:DENIED
U_GUEST    sup180   denied         approve               refused:standing
U_LOST     sup180   denied         approve               refused:unreadable
U_SUP1     sup180   denied         undo                  ended:DENIED
U_FIN1     fin1200  denied         approve+amount=1200   ended:DENIED
U_SUP1     sup180   expired        approve               ended:EXPIRED
U_SUP1     sup180   expired        deny                  ended:EXPIRED
U_FIN1     sup180   expired        approve               ended:EXPIRED
U_AGENT    sup180   expired        deny                  ended:EXPIRED
U_EXTERN   sup180   expired        approve               refused:standing
U_FIN1     fin800   expired        approve               ended:EXPIRED
U_SUP1     sup180   voided         approve               ended:VOIDED
U_SUP1     sup180   voided         deny                  ended:VOIDED
U_SUP2     sup180   voided         undo                  ended:VOIDED
U_OTHER    sup180   voided         approve               ended:VOIDED
U_GONE     sup180   voided         approve               refused:standing

# past the deadline, no sweep has run: refused at the click itself
U_SUP1     sup180   overdue        approve               ended:EXPIRED
U_SUP2     sup180   overdue        approve               ended:EXPIRED
U_SUP1     sup180   overdue        deny                  ended:EXPIRED
U_FIN1     sup180   overdue        approve               ended:EXPIRED
U_AGENT    sup180   overdue        approve               ended:EXPIRED
U_GUEST    sup180   overdue        approve               refused:standing
U_LOST     sup180   overdue        approve               refused:unreadable
U_FIN1     fin800   overdue        approve               ended:EXPIRED
U_FIN1     fin1200  overdue        approve+amount=1200   ended:EXPIRED
U_FIN2     fin800   overdue-voted  approve               ended:EXPIRED
U_FIN1     fin800   overdue-voted  approve               ended:EXPIRED
U_FIN2     fin800   overdue-voted  deny                  ended:EXPIRED

# decided before the deadline, which has passed since: decisions do not expire
U_SUP1     sup180   old-approved   approve               ended:APPROVED
U_SUP1     sup180   old-approved   deny                  denied-late
U_SUP1     sup180   old-released   deny                  denied-late

# an older card of the same approval
U_SUP1     sup180   pending        approve+card=0        stale_card
U_SUP1     sup180   pending        deny+card=0           stale_card
U_SUP1     sup180   pending        approve+card=2        stale_card
U_FIN1     sup180   pending        approve+card=0        stale_card
U_GUEST    sup180   pending        approve+card=0        refused:standing
U_SUP1     sup180   denied         approve+card=0        ended:DENIED
U_SUP1     sup180   approved       approve+card=0        ended:APPROVED
U_SUP1     sup180   approved       deny+card=0           stale_card
U_SUP1     sup180   sent           deny+card=0           already_sent
U_SUP1     sup180   overdue        approve+card=0        ended:EXPIRED
`;

export interface DecisionRow {
  readonly line: string;
  readonly person: string;
  readonly card: string;
  readonly state: string;
  readonly click: ClickText;
  readonly expected: string;
}

export interface ClickText {
  readonly verb: "approve" | "deny" | "undo";
  readonly amount: string | null;
  readonly suggest: bigint | null;
  readonly card: number | null;
}

/** The table's lines as values. Throws on a line that has not five columns. */
export function decisionRows(): readonly DecisionRow[] {
  return DECISION_TABLE.split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(rowOf);
}

function rowOf(text: string): DecisionRow {
  const [person, card, state, click, expected, ...more] = text.split(/\s+/);
  const complete =
    person !== undefined &&
    card !== undefined &&
    state !== undefined &&
    click !== undefined &&
    expected !== undefined;
  if (!complete || more.length > 0) throw new Error(`not a row of the decision table: ${text}`);
  return { line: text.replace(/\s+/g, " "), person, card, state, click: clickOf(click), expected };
}

function clickOf(text: string): ClickText {
  const [verb = "", ...parts] = text.split("+");
  if (verb !== "approve" && verb !== "deny" && verb !== "undo") throw new Error(`no click: ${text}`);
  const values = new Map(
    parts.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
  );
  const suggest = values.get("suggest");
  const card = values.get("card");
  return {
    verb,
    amount: values.get("amount") ?? null,
    suggest: suggest === undefined ? null : BigInt(suggest),
    card: card === undefined ? null : Number(card),
  };
}
