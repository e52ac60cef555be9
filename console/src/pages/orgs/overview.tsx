// An org at a glance: its sandboxes, hours and agents, and what is left to set up.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ComponentType } from 'react';
import { Link } from 'react-router';
import { SANDBOX_STATES, type api, type Permission } from '@berth/sdk';
import { newestQuery } from '../../queries/activity.ts';
import { inboxQuery } from '../../queries/agent-sessions.ts';
import { sandboxCountsQuery, sandboxesQuery } from '../../queries/sandboxes.ts';
import { subscriptionQuery, usageQuery } from '../../queries/usage.ts';
import { PATHS } from '../../rules/paths.ts';
import { activityText } from '../../text/activity.ts';
import { agentsText } from '../../text/agents.ts';
import { en } from '../../text/en.ts';
import { overviewText as text } from '../../text/overview.ts';
import { usageText } from '../../text/usage.ts';
import { Page, Records, Share, Status, Time, Untrusted, type Columns } from '../../ui/kit/index.ts';
import { Entries } from '../activity/timeline.tsx';
import { SessionRecords } from '../agents/session-records.tsx';
import { Loaded, Permitted, useOrgInView } from '../frame/content.tsx';
import { Period } from '../usage/period.tsx';
import { Checklist } from './checklist.tsx';
import css from './overview.module.css';

const FAILURES = 5;
const FAILED = { status: ['failed'] } satisfies Parameters<typeof sandboxesQuery>[1];

interface Part {
  name: string;
  /** The page with all of it. */
  path: (orgId: string) => string;
  permission: Permission;
  Content: ComponentType;
}

const PARTS: readonly Part[] = [
  { name: en.sandboxes.title, path: PATHS.sandboxes, permission: 'sandbox.read', Content: Sandboxes },
  { name: text.parts.hours, path: PATHS.usage, permission: 'billing.read', Content: Hours },
  { name: text.parts.waiting, path: () => PATHS.inbox, permission: 'agent_session.read', Content: Waiting },
  { name: text.parts.failures, path: (id) => listOf(id, 'failed'), permission: 'sandbox.read', Content: Failures },
  { name: activityText.title, path: PATHS.activity, permission: 'activity.read', Content: Newest },
];

const listOf = (orgId: string, status: string): string =>
  `${PATHS.sandboxes(orgId)}?status=${encodeURIComponent(status)}`;

export function OverviewPage() {
  const { orgId, org, refusalOf } = useOrgInView();
  return (
    <Page title={text.title}>
      <Permitted permission="org.read">
        <div className={css.parts}>
          {org === undefined ? null : <Checklist org={org} dismissible />}
          {PARTS.map(({ name, path, permission, Content }) => {
            const refusal = refusalOf(permission);
            return (
              <section key={name} className={css.part} aria-label={name}>
                <h2>{refusal === null ? <Link to={path(orgId)}>{name}</Link> : name}</h2>
                {refusal === null ? <Content /> : <p className={css.quiet}>{refusal}</p>}
              </section>
            );
          })}
        </div>
      </Permitted>
    </Page>
  );
}

function Sandboxes() {
  const { orgId } = useOrgInView();
  const { data: subscription } = useQuery({ ...subscriptionQuery(orgId), refetchInterval: false });
  return (
    <Loaded query={useQuery(sandboxCountsQuery(orgId, {}))} rows={3}>
      {({ total, byStatus }) => {
        const counts = Object.entries(byStatus);
        const states: Readonly<Record<string, { concurrent: boolean }>> = SANDBOX_STATES;
        const awake = counts.reduce((sum, [status, count]) => sum + (states[status]?.concurrent ? count : 0), 0);
        const most = subscription?.plan.concurrentSandboxes ?? null;
        const sentence = text.awake(awake, most);
        return (
          <>
            <p>{total === 0 ? en.sandboxes.empty : sentence}</p>
            {most === null ? null : (
              <Share label={sentence} percent={(100 * awake) / most} tone={awake < most ? 'bar' : 'careful'} />
            )}
            <ul className={css.counts}>
              {counts.map(([status, count]) => (
                <li key={status}>
                  <Link to={listOf(orgId, status)}>
                    <Status status={status} /> {count}
                  </Link>
                </li>
              ))}
            </ul>
          </>
        );
      }}
    </Loaded>
  );
}

function Hours() {
  return (
    <Loaded query={useQuery(usageQuery(useOrgInView().orgId, {}))} rows={3}>
      {(usage) => (
        <>
          <Period usage={usage} heading="h3" />
          <p className={css.quiet}>{usageText.hint}</p>
        </>
      )}
    </Loaded>
  );
}

function Waiting() {
  const { orgId } = useOrgInView();
  return (
    <Loaded query={useQuery(inboxQuery)} rows={2}>
      {(all) => {
        const sessions = all.filter((session) => session.orgId === orgId);
        if (sessions.length === 0) return <p className={css.quiet}>{agentsText.nobodyWaits}</p>;
        return <SessionRecords sessions={sessions} />;
      }}
    </Loaded>
  );
}

const FAILURE_COLUMNS: Columns<api.Sandbox> = [
  {
    name: en.sandboxes.columns.name,
    cell: ({ id, name }) => (
      <Link to={PATHS.sandbox(id)}>
        <Untrusted text={name} />
      </Link>
    ),
  },
  {
    name: text.failure.reason,
    cell: ({ statusReason }) => <Untrusted text={statusReason?.message ?? text.failure.noReason} />,
  },
  { name: text.failure.since, quiet: true, cell: ({ statusChangedAt }) => <Time at={statusChangedAt} /> },
];

const newestFirst = (one: api.Sandbox, other: api.Sandbox): number =>
  Date.parse(other.statusChangedAt) - Date.parse(one.statusChangedAt);

function Failures() {
  const query = useInfiniteQuery(sandboxesQuery(useOrgInView().orgId, FAILED));
  const empty = <p className={css.quiet}>{text.noFailures}</p>;
  return (
    <Loaded query={{ ...query, hasNextPage: false }} rows={2} empty={empty}>
      {(failed) => (
        <Records
          label={text.parts.failures}
          records={failed.toSorted(newestFirst).slice(0, FAILURES)}
          keyOf={({ id }) => id}
          columns={FAILURE_COLUMNS}
        />
      )}
    </Loaded>
  );
}

function Newest() {
  const query = useQuery(newestQuery(useOrgInView().orgId));
  return (
    <Loaded query={query} rows={4} empty={<p className={css.quiet}>{activityText.empty}</p>}>
      {(entries) => <Entries entries={entries} />}
    </Loaded>
  );
}
