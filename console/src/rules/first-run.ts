// Progress of the first run, read from the activity of its sandbox.
import type { api } from '@berth/sdk';

/** Under which the browser keeps that the person left the first run. */
export const skippedName = (orgId: string): string => `berth.start.${orgId}`;

type Entry = Pick<api.ActivityEntry, 'kind' | 'at' | 'actor'>;

const STAGES: readonly string[] = ['sandbox_created', 'sandbox_running', 'sandbox_ready'];

/** Stages of the create in their order, with milliseconds since its begin. */
export function stagesOf(entries: readonly Entry[]): { kind: string; ms: number }[] {
  const stages = STAGES.flatMap((kind) => entries.findLast((entry) => entry.kind === kind) ?? []);
  const [created] = stages;
  if (created === undefined || created.kind !== STAGES[0]) return [];
  return stages.map(({ kind, at }) => ({ kind, ms: Date.parse(at) - Date.parse(created.at) }));
}

/** Steps that are done. @param entries newest first */
export function stepsOf(entries: readonly Entry[]) {
  const has = (kind: string): boolean => entries.some((entry) => entry.kind === kind);
  return {
    terminal: has('sandbox_connected'),
    code: entries.some(({ actor }) => actor.kind === 'api_key'),
    serve: has('preview_link_created'),
    sleep: has('sandbox_woken'),
  };
}
