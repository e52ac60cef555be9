// Retention of the activity feed: days by plan. Pure.
// An org whose plan is unknown keeps its entries: a missing plans file must not delete them.
import type { Plans } from '../billing/plan-catalogue.ts';

/** The plans of the catalogue that delete entries, by their retention. */
export function plansByRetention(plans: Plans): { days: number; plans: string[] }[] {
  const all = [...plans.values()];
  const days = new Set(all.flatMap(({ activityRetentionDays }) => activityRetentionDays ?? []));
  return [...days].map((one) => ({
    days: one,
    plans: all.filter(({ activityRetentionDays }) => activityRetentionDays === one).map(({ id }) => id),
  }));
}

/** Longest retention in days of the plans in use; null if an org keeps its entries forever. */
export function longestRetention(plans: Plans, inUse: readonly (string | null)[]): number | null {
  let longest = 0;
  for (const id of inUse) {
    const days = id === null ? null : (plans.get(id)?.activityRetentionDays ?? null);
    if (days === null) return null;
    longest = Math.max(longest, days);
  }
  return inUse.length === 0 ? null : longest;
}
