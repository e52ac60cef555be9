// Set-up of a new org. Its data tick the items; those of other people are left out.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'react-router';
import type { api, Permission } from '@berth/sdk';
import { createdQuery } from '../../queries/activity.ts';
import { apiKeysQuery } from '../../queries/api-keys.ts';
import { invitationsQuery, membersQuery } from '../../queries/members.ts';
import { sandboxCountsQuery } from '../../queries/sandboxes.ts';
import { usageQuery } from '../../queries/usage.ts';
import { mayIn } from '../../rules/access.ts';
import { PATHS } from '../../rules/paths.ts';
import { readStored, store } from '../../session/stored.ts';
import { overviewText as text, type ChecklistItem } from '../../text/overview.ts';
import { Button, Tick } from '../../ui/kit/index.ts';
import css from './checklist.module.css';

const ITEMS: readonly (readonly [ChecklistItem, Permission, (orgId: string) => string])[] = [
  ['sandbox', 'sandbox.create', PATHS.start],
  ['key', 'api_keys.manage', PATHS.apiKeys],
  ['invite', 'org.members.manage', PATHS.members],
  ['cap', 'usage_guardrails.manage', PATHS.usage],
];

/** Items of the person, and whether they are done; empty until all are known. */
function useItems(org: api.Org): readonly { item: ChecklistItem; path: string; done: boolean }[] {
  const { id } = org;
  const may = (permission: Permission) => ({ enabled: mayIn(org, permission) });
  const { data: counts } = useQuery(sandboxCountsQuery(id, {}));
  const { data: created } = useQuery(createdQuery(id));
  const { data: keys } = useInfiniteQuery({ ...apiKeysQuery(id), ...may('api_keys.manage') });
  const { data: members } = useQuery(membersQuery(id));
  const { data: invitations } = useInfiniteQuery({ ...invitationsQuery(id), ...may('org.members.manage') });
  const { data: usage } = useQuery({ ...usageQuery(id, {}), ...may('billing.read') });
  const done: Readonly<Record<ChecklistItem, boolean | undefined>> = {
    // Its entry outlives a sandbox, and a sandbox its entry.
    sandbox: counts && created !== undefined ? counts.total > 0 || created !== null : undefined,
    key: keys && keys.length > 0,
    invite: members && invitations && members.length + invitations.length > 1,
    cap: usage && usage.sandboxMachineHourLimit !== null,
  };
  const items = ITEMS.filter(([, permission]) => mayIn(org, permission));
  const known = items.flatMap(([item, , path]) => {
    const isDone = done[item];
    return isDone === undefined ? [] : [{ item, path: path(id), done: isDone }];
  });
  return known.length === items.length ? known : [];
}

interface ChecklistProps {
  org: api.Org;
  /** Can be hidden, and is once all is done. */
  dismissible?: boolean;
}

export function Checklist({ org, dismissible = false }: ChecklistProps) {
  const name = `berth.checklist.${org.id}`;
  const [hidden, setHidden] = useState(() => dismissible && readStored(name) !== null);
  if (hidden) return null;
  const hide = (): void => {
    store(name, 'hidden');
    setHidden(true);
  };
  return <Items org={org} hide={dismissible ? hide : null} />;
}

function Items({ org, hide }: { org: api.Org; hide: (() => void) | null }) {
  const items = useItems(org);
  const isOver = hide !== null && items.length > 0 && items.every(({ done }) => done);
  useEffect(() => {
    if (isOver) hide();
  });
  if (isOver || items.length === 0) return null;
  const list = (
    <ul className={css.items}>
      {items.map(({ item, path, done }) => (
        <li key={item}>
          <Tick done={done} />
          <Link to={path}>{text.item(item)}</Link>
        </li>
      ))}
    </ul>
  );
  if (hide === null) return list;
  return (
    <section className={css.card} aria-labelledby="checklist">
      <h2 id="checklist">{text.checklist}</h2>
      {list}
      <Button onClick={hide}>{text.dismiss}</Button>
    </section>
  );
}
