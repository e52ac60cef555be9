// Reads back the rules of rules.ts from the kernel, as `nft` lists them. Pure.
import { z } from 'zod';
import { EGRESS_TABLE, type AllowedAddress } from './rules.ts';

/** Lists the table as JSON. Fails if there is none: the slot has the policy `open`. */
export const LIST_TABLE = ['nft', '-j', 'list', 'table', ...EGRESS_TABLE.split(' ')];

const element = z.object({
  elem: z.object({ val: z.string(), expires: z.int().min(0), comment: z.string().optional() }),
});

const denied = z.array(z.object({ elem: z.object({ val: z.string() }) }));

const listing = z.object({
  nftables: z.array(
    z.object({
      chain: z.object({ name: z.string() }).optional(),
      counter: z.object({ name: z.string(), packets: z.int().min(0) }).optional(),
      set: z.object({ name: z.string(), elem: z.array(z.unknown()).default([]) }).optional(),
    }),
  ),
});

export interface LoadedTable {
  /** Name of the chain of the policy; see `policyChain`. */
  chain: string;
  resolved: AllowedAddress[];
  /** Packets refused since the rules were loaded, and the last addresses. */
  denied: { packets: number; addresses: string[] };
}

/** Null if the text is no listing of such a table. */
export function readTable(json: string): LoadedTable | null {
  try {
    const parts = listing.parse(JSON.parse(json)).nftables;
    const chain = parts.find((part) => part.chain?.name.startsWith('policy_'))?.chain;
    const elementsOf = (name: string): unknown[] | undefined =>
      parts.find((part) => part.set?.name === name)?.set?.elem;
    const elements = elementsOf('resolved');
    if (chain === undefined || elements === undefined) return null;
    const resolved = z.array(element).parse(elements);
    return {
      chain: chain.name,
      resolved: resolved.map(({ elem: { val, expires, comment = null } }) => ({
        address: val,
        name: comment,
        seconds: expires,
      })),
      denied: {
        packets: parts.find((part) => part.counter?.name === 'denied')?.counter?.packets ?? 0,
        addresses: denied.parse(elementsOf('denied_to') ?? []).map(({ elem }) => elem.val),
      },
    };
  } catch {
    return null;
  }
}
