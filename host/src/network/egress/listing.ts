// Reads back the rules of rules.ts from the kernel, as `nft` lists them. Pure.
import { z } from 'zod';
import { EGRESS_TABLE, type AllowedAddress } from './rules.ts';

/** Lists the table as JSON. Fails if there is none: the slot has the policy `open`. */
export const LIST_TABLE = ['nft', '-j', 'list', 'table', ...EGRESS_TABLE.split(' ')];

const element = z.object({
  elem: z.object({ val: z.string(), expires: z.int().min(0), comment: z.string().optional() }),
});

const listing = z.object({
  nftables: z.array(
    z.object({
      chain: z.object({ name: z.string() }).optional(),
      set: z.object({ name: z.string(), elem: z.array(z.unknown()).default([]) }).optional(),
    }),
  ),
});

interface LoadedTable {
  /** Name of the chain of the policy; see `policyChain`. */
  chain: string;
  resolved: AllowedAddress[];
}

/** Null if the text is no listing of such a table. */
export function readTable(json: string): LoadedTable | null {
  try {
    const parts = listing.parse(JSON.parse(json)).nftables;
    const chain = parts.find((part) => part.chain?.name.startsWith('policy_'))?.chain;
    const set = parts.find((part) => part.set?.name === 'resolved')?.set;
    if (chain === undefined || set === undefined) return null;
    const resolved = z.array(element).parse(set.elem);
    return {
      chain: chain.name,
      resolved: resolved.map(({ elem: { val, expires, comment = null } }) => ({
        address: val,
        name: comment,
        seconds: expires,
      })),
    };
  } catch {
    return null;
  }
}
