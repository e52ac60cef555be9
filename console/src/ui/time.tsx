import { durationBetween } from '../rules/duration.ts';
import { en } from '../text/en.ts';
import { useNow } from './clock.ts';

/**
 * A time relative to now, with the absolute time as tooltip.
 * @param ahead the time may lie in the future; others may only be newer than the clock's last tick
 * @param absent text in place of an unknown time
 */
export function Time({ at, ahead = false, absent }: { at: string | null; ahead?: boolean; absent?: string }) {
  const now = useNow();
  if (at === null) return absent;
  const date = new Date(at);
  const then = ahead ? date.getTime() : Math.min(date.getTime(), now);
  return (
    <time dateTime={at} title={en.time.absolute(date)}>
      {en.time.ago(durationBetween(then, now))}
    </time>
  );
}
