// Names of a DNS query and of an egress policy. Pure.
import type { EgressPolicy } from '@berth/protocol/egress.ts';

export type NamePolicy = Readonly<Pick<EgressPolicy, 'mode'>> & { readonly names: readonly string[] };

/** True if the relay may resolve the name, given in lower case without a trailing dot. */
export function allowsName({ mode, names }: NamePolicy, name: string): boolean {
  if (mode === 'open') return true;
  if (mode === 'none') return false;
  return names.some((allowed) =>
    allowed.startsWith('*.') ? name.endsWith(allowed.slice(1)) && name.length > allowed.length - 1 : name === allowed,
  );
}
