/** Times as people read them: in their own time zone where Slack can do it, always with the zone in the fallback. */

/** "2 Nov 2026, 14:05 UTC": for plain text, notifications and screen readers. */
export function utcTime(at: Date): string {
  return `${UTC.format(at)} UTC`;
}

/** A date that Slack shows in the reader's zone; its fallback names UTC. For mrkdwn only. */
export function localTime(at: Date): string {
  return `<!date^${Math.floor(at.getTime() / 1000)}^{date_short_pretty} {time}|${utcTime(at)}>`;
}

/** As `localTime`, to the second: for the order of events. */
export function localSecond(at: Date): string {
  const fallback = `${UTC.format(at)}:${String(at.getUTCSeconds()).padStart(2, "0")} UTC`;
  return `<!date^${Math.floor(at.getTime() / 1000)}^{date_short_pretty} {time_secs}|${fallback}>`;
}

const UTC = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
