// The org in view: of the address, of the sandbox or agent session in view, or the last one.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useParams } from 'react-router';
import type { api } from '@berth/sdk';
import { agentSessionQuery } from '../../queries/agent-sessions.ts';
import { orgsQuery } from '../../queries/orgs.ts';
import { sandboxQuery } from '../../queries/sandboxes.ts';
import { readStored, store } from '../../session/stored.ts';

const KEY = 'berth.org';

/** The last org in view; null if unknown. */
export const lastOrgId = (): string | null => readStored(KEY);

/** Also the org that the page showed until it removed the person. */
export function useCurrentOrg(): { org: api.Org | undefined; lost: api.Org | null } {
  const { orgId, sandboxId = '', sessionId = '' } = useParams();
  const sandbox = useQuery({ ...sandboxQuery(sandboxId), enabled: sandboxId !== '' });
  const session = useQuery({ ...agentSessionQuery(sessionId), enabled: sessionId !== '' });
  const { data: orgs = [] } = useQuery(orgsQuery);
  const shownId = orgId ?? sandbox.data?.orgId ?? session.data?.orgId;
  const byId = (wanted: string | null): api.Org | undefined => orgs.find(({ id }) => id === wanted);
  const shown = byId(shownId ?? null);
  const [seen, setSeen] = useState(shown);
  if (shown !== undefined && shown !== seen) setSeen(shown);
  const found = byId(shownId ?? lastOrgId()) ?? (orgId === undefined && orgs.length === 1 ? orgs[0] : undefined);
  useEffect(() => {
    if (found !== undefined) store(KEY, found.id);
  }, [found]);
  return { org: found, lost: shown === undefined && seen?.id === shownId ? (seen ?? null) : null };
}
