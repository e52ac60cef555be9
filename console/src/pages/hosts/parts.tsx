// Parts of the pages of hosts: who may see them, meters, emulation.
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { orgsQuery } from '../../queries/orgs.ts';
import { mayIn } from '../../rules/access.ts';
import { hostsText as text } from '../../text/hosts.ts';
import { Share, Untrusted } from '../../ui/kit/index.ts';
import { Forbidden, Loaded } from '../frame/content.tsx';
import css from './hosts.module.css';

export type Resource = keyof api.Host['capacity'];

const CAREFUL_PERCENT = 80;

/** Content for members of the operator's org, or why the person may not see it. */
export function ForOperator({ children }: { children: ReactNode }) {
  return (
    <Loaded query={useQuery(orgsQuery)}>
      {(orgs) => (orgs.some((org) => mayIn(org, 'hosts.read')) ? children : <Forbidden reason={text.forbidden} />)}
    </Loaded>
  );
}

/** Reserved part of a resource, in words and as a bar. */
export function Meter({ host, resource }: { host: api.Host; resource: Resource }) {
  const [used, all] = [host.reserved[resource], host.capacity[resource]];
  const percent = all === 0 ? 100 : (used / all) * 100;
  const tone = percent >= 100 ? 'bad' : percent >= CAREFUL_PERCENT ? 'careful' : 'bar';
  return (
    <div className={css.meter}>
      {text.usedOf(resource, used, all)}
      <Share label={text.percent(percent)} percent={percent} tone={tone} />
    </div>
  );
}

/** The state, and how the VMs of the host run. */
export function HostState({ host: { state, accelerator } }: { host: api.Host }) {
  return (
    <>
      <span className={state === 'unavailable' ? css.bad : css.hint}>
        <Untrusted text={text.stateOf(state)} />
      </span>
      <span className={accelerator === 'kvm' ? css.hint : css.careful}>
        {' · '}
        <Untrusted text={text.acceleratorOf(accelerator)} />
      </span>
    </>
  );
}

export function Emulated({ hosts }: { hosts: readonly api.Host[] }) {
  if (!hosts.some(({ accelerator }) => accelerator === 'tcg')) return null;
  return <p className={css.warning}>{text.emulated}</p>;
}
