/** Times as people read them: in their own time zone where Slack can do it, always with the zone in the fallback. */
import { UTC_TIMES, utcSecond, utcTime } from "../../domain/text/utc-time.js";

/** A date that Slack shows in the reader's zone; its fallback names UTC. For mrkdwn only. */
export function localTime(at: Date): string {
  return `<!date^${Math.floor(at.getTime() / 1000)}^{date_short_pretty} {time}|${utcTime(at)}>`;
}

/** As `localTime`, to the second: for the order of events. */
export function localSecond(at: Date): string {
  return `<!date^${Math.floor(at.getTime() / 1000)}^{date_short_pretty} {time_secs}|${utcSecond(at)}>`;
}

/** Escaped text, its times in the reader's zone as those beside it: nobody reads two clocks on one card. For mrkdwn only. */
export function withLocalTimes(escaped: string): string {
  return escaped.replace(UTC_TIMES, (whole, day: string, time: string, seconds: string | undefined) => {
    const at = new Date(`${day} ${time} UTC`);
    if (Number.isNaN(at.getTime())) return whole;
    return seconds === undefined ? localTime(at) : localSecond(at);
  });
}
