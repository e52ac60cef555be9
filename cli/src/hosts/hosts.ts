// `berth service hosts` and `host`.
import type { Host, HostsPage } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { mebibytes, percent } from '../output/amount.ts';
import { plainText } from '../output/plain-text.ts';
import type { Style } from '../output/style.ts';
import type { Column } from '../output/table.ts';
import { since } from '../output/time.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

const EMULATED = 'emulated (tcg): VMs are many times slower than with KVM';

const stateStyle = ({ state }: Host): Style => (state === 'available' ? 'green' : 'red');
const memory = ({ memoryMib }: Host['free']): string => mebibytes(memoryMib);
const disk = ({ diskGib }: Host['free']): string => mebibytes(diskGib * 1_024);
const poolOf = ({ pool }: Host): string | null => pool && `${pool.ready} of ${pool.target}`;

const COLUMNS: readonly Column<Host>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'state', value: ({ state }) => state, style: stateStyle, least: 11 },
  {
    title: 'accel',
    value: ({ accelerator }) => accelerator,
    style: ({ accelerator }) => (accelerator === 'tcg' ? 'yellow' : undefined),
    least: 4,
  },
  { title: 'free vcpu', value: ({ free, capacity }) => `${free.vcpu} of ${capacity.vcpu}` },
  { title: 'free memory', value: ({ free, capacity }) => `${memory(free)} of ${memory(capacity)}` },
  { title: 'free disk', value: ({ free, capacity }) => `${disk(free)} of ${disk(capacity)}` },
  { title: 'pool', value: poolOf, optional: true },
  { title: 'vms', value: ({ vms }) => vms, align: 'right', optional: true },
  { title: 'asleep', value: ({ asleep }) => asleep, align: 'right', optional: true },
  { title: 'seen', value: ({ lastSeenAt }) => since(lastSeenAt), least: 8 },
];

export async function listHosts({ connect, out, signal }: CliContext): Promise<void> {
  const { berth } = await connect();
  let emulated = false;
  for (let after: string | null = '', isFirst = true; after !== null; isFirst = false) {
    const page: HostsPage = await berth.raw.listHosts({ query: after === '' ? {} : { after }, signal });
    if (out.json) out.object(page);
    else out.table(COLUMNS, page.hosts, 'no host has responded yet', { titles: isFirst });
    emulated ||= page.hosts.some(({ accelerator }) => accelerator === 'tcg');
    after = page.nextCursor;
  }
  if (emulated && !out.json) out.note(EMULATED);
}

export async function showHost(
  { connect, out, signal }: CliContext,
  { args: [typed], options: query }: Input<{ limit?: number; after?: string }>,
): Promise<void> {
  const hostId = checkResourceId('host', typed);
  const { berth } = await connect();
  const answer = await berth.raw.getHost({ path: { hostId }, query, signal });
  if (out.json) return out.object(answer);
  const { host, sandboxes, nextCursor } = answer;
  const { capacity, reserved } = host;
  const of = (show: (room: Host['free']) => string, resource: keyof Host['free']): string => {
    const share = capacity[resource] === 0 ? 100 : (reserved[resource] / capacity[resource]) * 100;
    return `${show(reserved)} of ${show(capacity)} (${percent(share)})`;
  };
  out.fields([
    ['id', host.id],
    ['state', host.state, stateStyle(host)],
    ['seen', since(host.lastSeenAt)],
    [
      'accelerator',
      host.accelerator === 'tcg' ? EMULATED : host.accelerator,
      host.accelerator === 'tcg' ? 'yellow' : undefined,
    ],
    ['reserved vcpu', of(({ vcpu }) => String(vcpu), 'vcpu')],
    ['reserved memory', of(memory, 'memoryMib')],
    ['reserved disk', of(disk, 'diskGib')],
    ['pool', poolOf(host)],
    ['vms', host.vms],
    ['asleep', host.asleep],
  ]);
  out.line();
  out.table(
    [
      { title: 'sandbox', value: ({ id }) => id, whole: true },
      { title: 'org', value: ({ orgId }) => orgId, whole: true, optional: true },
      { title: 'status', value: ({ status }) => status, least: 8 },
      { title: 'vcpu', value: ({ size }) => size.vcpu, align: 'right' },
      { title: 'memory', value: ({ size }) => memory(size), align: 'right' },
      { title: 'disk', value: ({ size }) => disk(size), align: 'right' },
      { title: 'since', value: ({ statusChangedAt }) => since(statusChangedAt), least: 8 },
    ],
    sandboxes,
    'no sandboxes',
  );
  if (nextCursor !== null) out.note(`more sandboxes exist: use --after ${plainText(nextCursor)}`);
}
