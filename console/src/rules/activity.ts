// Presentation of activity entries. Unknown kinds, actors and details are shown by their names.
import type { api } from '@berth/sdk';

export type ActivityKind = NonNullable<NonNullable<api.ListActivityData['query']>['kind']>;

/** Area of a kind, by its noun: for icons, and for groups of the filter. */
export type ActivityArea = 'sandbox' | 'agent' | 'preview' | 'people' | 'access' | 'project' | 'org';

const AREAS: readonly (readonly [ActivityArea, RegExp])[] = [
  ['access', /^(?:api_key|agent_token|sign_in)_/],
  ['agent', /^agent_/],
  ['sandbox', /^sandbox_/],
  ['preview', /^preview_/],
  ['people', /^(?:member|invitation|owner_link|domain|sso)_/],
  ['project', /^project_/],
];

export function areaOf(kind: string): ActivityArea {
  return AREAS.find(([, pattern]) => pattern.test(kind))?.[0] ?? 'org';
}

/** Areas of entries that name a sandbox. */
export const SANDBOX_AREAS: readonly ActivityArea[] = ['sandbox', 'agent', 'preview'];

/** True for kinds that report a failure. */
export function isBad(kind: string): boolean {
  return /_(?:failed|denied|warning)$/.test(kind);
}

interface Day<T> {
  day: string;
  entries: T[];
}

/** Entries by the day of their time, in their order. */
export function byDay<T extends { at: string }>(entries: readonly T[], dayOf: (at: Date) => string): Day<T>[] {
  const days: Day<T>[] = [];
  for (const entry of entries) {
    const day = dayOf(new Date(entry.at));
    const last = days.at(-1);
    if (last?.day === day) last.entries.push(entry);
    else days.push({ day, entries: [entry] });
  }
  return days;
}

/** Details as text by name, without empty ones. */
export function detailsOf({ details }: Pick<api.ActivityEntry, 'details'>): { name: string; value: string }[] {
  return Object.entries(details)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => ({ name, value: typeof value === 'string' ? value : JSON.stringify(value) }));
}
