// A host: capacity, warm pool, and its sandboxes of all orgs.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import type { api } from '@berth/sdk';
import { hostQuery } from '../../queries/hosts.ts';
import { useOrg } from '../../queries/orgs.ts';
import { PATHS } from '../../rules/paths.ts';
import { en } from '../../text/en.ts';
import { hostsText as text } from '../../text/hosts.ts';
import { Facts, Notice, Page, Records, Section, Status, Time, Untrusted, type Columns } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import sandboxCss from '../sandboxes/sandbox.module.css';
import css from './hosts.module.css';
import { Emulated, ForOperator, HostState, Meter, type Resource } from './parts.tsx';

export function HostPage() {
  const { hostId = '' } = useParams();
  return (
    <Page
      key={hostId}
      title={hostId}
      crumbs={
        <nav className={sandboxCss.crumbs} aria-label={en.sandbox.crumbs}>
          <Link to={PATHS.hosts()}>{text.title}</Link>
        </nav>
      }
    >
      <ForOperator>
        <Host hostId={hostId} />
      </ForOperator>
    </Page>
  );
}

function Host({ hostId }: { hostId: string }) {
  return (
    <Loaded query={useInfiniteQuery(hostQuery(hostId))}>
      {({ host, sandboxes }) => (
        <div className={css.parts}>
          {host === undefined ? null : <Capacity host={host} />}
          <Sandboxes sandboxes={sandboxes} />
        </div>
      )}
    </Loaded>
  );
}

interface Row {
  host: api.Host;
  resource: Resource;
}

const RESOURCES = Object.keys(text.resources) as Resource[];
const AMOUNTS: Columns<Row> = [
  { name: text.columns.resource, cell: ({ resource }) => text.resources[resource] },
  { name: text.columns.reserved, cell: (row) => <Meter {...row} /> },
  { name: text.columns.free, cell: ({ host, resource }) => text.amountOf(resource, host.free[resource]) },
];

function Capacity({ host }: { host: api.Host }) {
  return (
    <section className={css.part} aria-labelledby="capacity">
      {host.state === 'unavailable' ? <p className={css.warning}>{text.unavailable}</p> : null}
      <Emulated hosts={[host]} />
      <Facts
        of={{
          [text.facts.status]: <HostState host={host} />,
          [text.facts.seen]: <Time at={host.lastSeenAt} />,
          [text.facts.pool]: text.poolOf(host.pool),
          [text.facts.vms]: host.vms,
          [text.facts.asleep]: host.asleep,
        }}
      />
      <h2 id="capacity">{text.capacity}</h2>
      <Records
        label={text.capacity}
        records={RESOURCES.map((resource) => ({ host, resource }))}
        keyOf={({ resource }) => resource}
        columns={AMOUNTS}
      />
    </section>
  );
}

/** A sandbox of the person's own orgs as a link, others by id. */
function SandboxId({ sandbox: { id, orgId } }: { sandbox: api.HostSandbox }) {
  return useOrg(orgId) === undefined ? id : <Link to={PATHS.sandbox(id)}>{id}</Link>;
}

function OrgName({ orgId }: { orgId: string }) {
  return <Untrusted text={useOrg(orgId)?.name ?? orgId} />;
}

const COLUMNS: Columns<api.HostSandbox> = [
  { name: text.columns.sandbox, cell: (sandbox) => <SandboxId sandbox={sandbox} /> },
  { name: text.facts.status, cell: ({ status }) => <Status status={status} /> },
  { name: text.columns.org, quiet: true, cell: ({ orgId }) => <OrgName orgId={orgId} /> },
  { name: text.size, cell: ({ size }) => text.sizeOf(size) },
];

function Sandboxes({ sandboxes }: { sandboxes: readonly api.HostSandbox[] }) {
  if (sandboxes.length === 0) return <Notice title={text.noSandboxes} />;
  return (
    <Section className={css.part} title={text.sandboxes}>
      <Records label={text.sandboxes} records={sandboxes} keyOf={({ id }) => id} columns={COLUMNS} />
    </Section>
  );
}
