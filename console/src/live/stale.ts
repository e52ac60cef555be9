// Cached responses that an entry of the activity feed makes stale, by its area.
import type { QueryKey } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { areaOf, type ActivityArea, type ActivityKind } from '../rules/activity.ts';

export interface Stale {
  queryKey: QueryKey;
  /** Only this query, none with a longer key. */
  exact?: true;
}

type Entry = Pick<api.ActivityEntry, 'kind' | 'sandboxId'>;

/** Kinds that change nothing on a page. A busy platform has one for each request. */
export const UNSEEN: readonly ActivityKind[] = [
  'sandbox_connected',
  'sandbox_exec',
  'sandbox_process_started',
  'sandbox_process_signaled',
  'sandbox_process_removed',
  'sandbox_file_written',
  'sandbox_file_deleted',
  'sandbox_file_moved',
  'sandbox_file_mode_changed',
  'sandbox_folder_created',
  'sandbox_metrics_sample',
];

const ofOrg = (orgId: string, ...rest: string[]): Stale => ({ queryKey: ['orgs', orgId, ...rest] });
const ofSandbox = (id: string | null, ...rest: string[]): Stale[] =>
  id === null ? [] : [{ queryKey: ['sandboxes', id, ...rest] }];
const ORGS: Stale = { queryKey: ['orgs'], exact: true };
/** Their lists span all orgs. */
const AGENT_SESSIONS: Stale = { queryKey: ['agent-sessions'] };

const STALE: Readonly<Record<ActivityArea, (orgId: string, entry: Entry) => Stale[]>> = {
  sandbox: (orgId, { sandboxId }) => [ofOrg(orgId, 'sandboxes'), ...ofSandbox(sandboxId)],
  agent: (_orgId, { sandboxId }) => [AGENT_SESSIONS, ...ofSandbox(sandboxId, 'agents')],
  preview: (_orgId, { sandboxId }) => ofSandbox(sandboxId, 'previews'),
  people: (orgId) => [ORGS, ...['members', 'invitations', 'sso'].map((part) => ofOrg(orgId, part))],
  access: (orgId) => [ofOrg(orgId, 'api-keys')],
  project: (orgId) => [ofOrg(orgId, 'projects')],
  org: (orgId) => [ORGS, ofOrg(orgId, 'usage'), ofOrg(orgId, 'billing')],
};

/** After an interruption, which may be an update. */
export const SERVICE: Stale = { queryKey: ['service'] };

/** Everything of an org that may be cached. */
export const allOf = (orgId: string): Stale[] => [
  ...[SERVICE, ORGS, ofOrg(orgId), AGENT_SESSIONS],
  { queryKey: ['sandboxes'] },
];

export function staleBy(orgId: string, entries: readonly Entry[]): Stale[] {
  const found = entries.flatMap((entry) => STALE[areaOf(entry.kind)](orgId, entry));
  const distinct = new Map([...found, ofOrg(orgId, 'activity')].map((stale) => [JSON.stringify(stale), stale]));
  return [...distinct.values()];
}
