// The hosts of the installation, for its operator.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import type { api } from '@berth/sdk';
import { hostsQuery } from '../../queries/hosts.ts';
import { PATHS } from '../../rules/paths.ts';
import { hostsText as text } from '../../text/hosts.ts';
import { Below, Notice, Page, Records, Time, Untrusted, type Column, type Columns } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import css from './hosts.module.css';
import { Emulated, ForOperator, HostState, Meter, type Resource } from './parts.tsx';

export function HostsPage() {
  return (
    <Page title={text.title}>
      <ForOperator>
        <Hosts />
      </ForOperator>
    </Page>
  );
}

const meter = (resource: Resource): Column<api.Host> => ({
  name: text.resources[resource],
  cell: (host) => <Meter host={host} resource={resource} />,
});

const COLUMNS: Columns<api.Host> = [
  {
    name: text.columns.host,
    cell: (host) => (
      <div>
        <Link to={PATHS.host(host.id)}>
          <Untrusted text={host.id} />
        </Link>
        <Below>
          <HostState host={host} />
        </Below>
      </div>
    ),
  },
  meter('vcpu'),
  meter('memoryMib'),
  meter('diskGib'),
  { name: text.facts.vms, cell: ({ vms }) => vms },
  { name: text.facts.pool, cell: ({ pool }) => text.poolOf(pool) },
  { name: text.facts.seen, quiet: true, cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
];

function Hosts() {
  const empty = <Notice {...text.empty} />;
  return (
    <>
      <p className={css.hint}>{text.hint}</p>
      <Loaded query={useInfiniteQuery(hostsQuery)} rows={3} empty={empty}>
        {(hosts) => (
          <>
            <Emulated hosts={hosts} />
            <Records label={text.title} records={hosts} keyOf={({ id }) => id} columns={COLUMNS} />
          </>
        )}
      </Loaded>
    </>
  );
}
