/**
 * How an event is written: its canonical body, its hash, its row, as SQL that every writing statement shares.
 *
 * A statement that uses these names a relation `m` with the operation's `id`, `event_count` and `head_hash` before the change
 * and `at_now`, the moment after its lock was held; and has the parameters :actor, :data, :event, :from, :to.
 */

/** Which parameters say what happened. */
export interface EventParameters {
  readonly actor: string;
  readonly data: string;
  readonly event: string;
  readonly from: string;
  readonly to: string;
}
const USUAL: EventParameters = { actor: ":actor", data: ":data", event: ":event", from: ":from", to: ":to" };

/** Keys in the order of RFC 8785. `:data` is canonical JSON already. */
export const eventBody = (
  parts: { attempt: string; token: string },
  { actor, data, event, from, to }: EventParameters = USUAL,
): string => `
    '{"actor":' || to_json(${actor}::text)::text
    || ',"at":"' || to_char(m.at_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","attempt":' || COALESCE((${parts.attempt})::text, 'null')
    || ',"data":' || ${data}::text
    || ',"from":' || COALESCE(to_json(${from}::text)::text, 'null')
    || ',"operation":' || to_json(m.id)::text
    || ',"seq":' || (m.event_count + 1)::text
    || ',"to":' || to_json(${to}::text)::text
    || ',"token":' || (${parts.token})::text
    || ',"type":' || to_json(${event}::text)::text || '}'`;

/** The hash of a body and its predecessor's hash, lower-case hex. */
export const eventHash = (previous: string, body: string): string =>
  `encode(sha256(convert_to(${previous} || E'\\n' || ${body}, 'UTF8')), 'hex')`;

/** Inserts the event from a relation `e` = `m` with `body`, `hash` and `event_attempt`. */
export const INSERT_EVENT = `
  INSERT INTO operation_events
    (operation_id, seq, at, type, from_status, to_status, actor, attempt, body, prev_hash, hash)
  SELECT e.id, e.event_count + 1, e.at_now, :event::text, :from::text, :to::text, :actor::text, e.event_attempt,
         e.body, e.head_hash, e.hash
  FROM e`;
