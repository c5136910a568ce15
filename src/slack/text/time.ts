/** Times as people read them: in their own time zone where Slack can do it, always with the zone in the fallback. */

/** "2 Nov 2026, 14:05 UTC": for plain text, notifications and screen readers. */
export function utcTime(at: Date): string {
  return `${UTC.format(at)} UTC`;
}

/** A date that Slack shows in the reader's zone; its fallback names UTC. For mrkdwn only. */
export function localTime(at: Date): string {
  return `<!date^${Math.floor(at.getTime() / 1000)}^{date_short_pretty} {time}|${utcTime(at)}>`;
}

/** "in 5 minutes", "in 23 hours": coarse, never longer than the truth. */
export function remaining(from: Date, to: Date): string {
  const minutes = Math.floor((to.getTime() - from.getTime()) / 60_000);
  if (minutes < 1) return "in less than a minute";
  if (minutes < 120) return `in ${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `in ${hours} hours` : `in ${Math.floor(hours / 24)} days`;
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
