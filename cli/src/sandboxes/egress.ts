// `berth sandbox egress`: replaces the egress policy of a sandbox. Also the parser and the text of
// policies.
import { InvalidArgumentError } from 'commander';
import type { api } from '@berth/sdk';
import { EGRESS_LIMITS } from '@berth/sdk/limits';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { findSandbox } from '../service/find-sandbox.ts';

export const EGRESS_ABOUT =
  'open, none, or allowed names, ranges and ports: github.com,*.npmjs.org,198.51.100.0/24,:443';

/** Parses `open`, `none` or a list. The service checks names and ranges. */
export function parseEgress(typed: string): api.EgressRequest {
  if (typed === 'open' || typed === 'none') return { mode: typed };
  const policy = { mode: 'allow' as const, names: [] as string[], ranges: [] as string[], ports: [] as number[] };
  for (const entry of typed.split(',').map((word) => word.trim())) {
    if (entry === '') throw new InvalidArgumentError('It has an empty entry.');
    if (/^:\d{1,5}$/.test(entry)) policy.ports.push(Number(entry.slice(1)));
    else if (/^[\d.]+(?:\/\d+)?$/.test(entry)) policy.ranges.push(entry);
    else policy.names.push(entry);
  }
  for (const list of ['names', 'ranges', 'ports'] as const) {
    const [has, most] = [policy[list].length, EGRESS_LIMITS[list]];
    if (has > most) throw new InvalidArgumentError(`It must have at most ${most} ${list}, not ${has}.`);
  }
  if (policy.names.length + policy.ranges.length === 0)
    throw new InvalidArgumentError('It must have a name or a range; 0.0.0.0/0 is every public address.');
  return policy;
}

/** The form that {@link parseEgress} reads. */
export function egressText({ mode, names, ranges, ports }: api.Egress): string {
  return mode === 'allow' ? [...names, ...ranges, ...ports.map((port) => `:${port}`)].join(',') : mode;
}

export async function setEgress(context: CliContext, { args: [typed, policy] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const body = parseEgress(policy ?? '');
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const answer = await berth.raw.setEgress({ path: { sandboxId: id }, body, signal });
  if (out.json) return out.object(answer);
  out.line(`${id} ${egressText(answer.sandbox.egress)}`);
  if (!answer.enforced) out.note('not in force yet: it is enforced at the next wake, or when the host responds');
}
