// Usage relative to a cap: percentage, status and message. Pure; usage/caps.ts selects the cap.
import type { UsageAlert, UsageAlertStatus } from '@berth/contract/usage/usage.ts';
import { capMs, describeWarning, hoursText, isAtCap, warningsDue, type CapScope, type CapUsage } from './caps.ts';

const HOUR_MS = 3_600_000;

/**
 * `stops`: work stops at the cap, running sandboxes after a grace period; null: work continues and
 * is metered.
 */
export function usageAlertOf(capUsage: CapUsage, stops: { graceSeconds: number } | null): UsageAlert {
  const status = statusOf(capUsage);
  return { percentUsed: percentOf(capUsage), status, message: messageOf(capUsage, status, stops) };
}

/** The alert without a cap. A project without its own cap is still subject to its org's. */
export function uncappedAlert(usedMs: number, scope: CapScope['kind']): UsageAlert {
  return {
    percentUsed: 0,
    status: 'normal',
    message:
      `${hoursText(usedMs / HOUR_MS)} machine hours are used in this billing period. ` +
      (scope === 'org' ? 'There is no cap on them.' : 'The project has no cap; a cap of its org applies.'),
  };
}

function statusOf({ usedMs, cap }: CapUsage): UsageAlertStatus {
  if (usedMs > capMs(cap)) return 'exceeded';
  if (isAtCap(usedMs, cap)) return 'reached';
  return warningsDue(usedMs, cap).includes(80) ? 'warning' : 'normal';
}

/** Rounded down, so that 100 means the cap is reached. A cap of 0 is always reached. */
function percentOf({ usedMs, cap }: CapUsage): number {
  return capMs(cap) === 0 ? 100 : Math.floor((usedMs * 10_000) / capMs(cap)) / 100;
}

function messageOf(capUsage: CapUsage, status: UsageAlertStatus, stops: { graceSeconds: number } | null): string {
  if (status === 'normal') {
    return (
      `${hoursText(capUsage.usedMs / HOUR_MS)} of ${hoursText(capUsage.cap)} ` +
      'machine hours are used in this billing period.'
    );
  }

  return describeWarning(capUsage, status === 'warning' ? 80 : 100, stops);
}
