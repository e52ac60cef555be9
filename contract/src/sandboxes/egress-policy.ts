// The egress policy in requests and responses.
import { z } from 'zod';
import { EGRESS_LIMITS } from '../route/limits.ts';

const MODES = ['open', 'none', 'allow'] as const;

const NAME = /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

const name = z
  .string()
  .min(1)
  .max(EGRESS_LIMITS.nameCharacters + 1)
  .transform((text, context) => {
    const normal = text.toLowerCase().replace(/\.$/, '');
    if (!NAME.test(normal) || /(?:^|\.)\d+$/.test(normal) || normal.length > EGRESS_LIMITS.nameCharacters) {
      context.issues.push({
        code: 'custom',
        input: text,
        message:
          'must be a DNS name such as example.com, or *.example.com for every name below it; write an address ' +
          'as a range, and a name with other characters in its xn-- form',
      });
    }
    return normal;
  })
  .meta({ description: 'DNS name such as `example.com`, or `*.example.com` for every name below it.' });

const range = z
  .string()
  .min(1)
  .max(18)
  .transform((text, context) => {
    const fault = rangeFault(text);
    if (fault !== null) context.issues.push({ code: 'custom', input: text, message: fault });
    return text.includes('/') ? text : `${text}/32`;
  })
  .meta({ description: 'IPv4 range such as `198.51.100.0/24`, or an IPv4 address.' });

function rangeFault(text: string): string | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/.exec(text);
  const [octets, prefix] = [match?.slice(1, 5) ?? [], match?.[5] ?? '32'];
  const plain = [...octets, prefix].every((part) => part === String(Number(part)));
  if (match === null || !plain || octets.some((octet) => Number(octet) > 255) || Number(prefix) > 32)
    return 'must be an IPv4 range such as 198.51.100.0/24 or an IPv4 address; sandboxes have no IPv6';
  const address = octets.reduce((sum, octet) => sum * 256 + Number(octet), 0);
  return address % 2 ** (32 - Number(prefix)) === 0 ? null : 'must have no address bits beyond its prefix';
}

/** An egress policy in requests. Parses to the form in responses. */
export const egress = z
  .strictObject({
    mode: z.enum(MODES).describe('`open`: all public addresses. `none`: nothing. `allow`: only `names` and `ranges`.'),
    names: z.array(name).max(EGRESS_LIMITS.names).default([]),
    ranges: z.array(range).max(EGRESS_LIMITS.ranges).default([]),
    ports: z
      .array(z.int().min(1).max(65_535))
      .max(EGRESS_LIMITS.ports)
      .default([])
      .describe('TCP and UDP ports of the allowed destinations; none: every port, and ICMP.'),
  })
  .check(({ value, issues }) => {
    const { mode, names, ranges, ports } = value;
    const lists = names.length + ranges.length;
    if (mode === 'allow' && lists === 0) {
      issues.push({
        code: 'custom',
        input: value,
        message: 'must have names or ranges with mode allow; 0.0.0.0/0 is every public address',
      });
    }
    if (mode !== 'allow' && lists + ports.length > 0) {
      issues.push({
        code: 'custom',
        input: value,
        message: `must have no names, ranges or ports with mode ${mode}; use mode allow for a list`,
      });
    }
  })
  .meta({
    id: 'EgressRequest',
    description:
      'Destinations that the sandbox may contact, enforced outside of it. Private and special ranges are always ' +
      'closed. A name is allowed with the addresses that it resolves to.',
  });
export type EgressBody = z.infer<typeof egress>;

/** An egress policy in responses. */
export const egressPolicy = z
  .strictObject({
    mode: z.enum(MODES),
    names: z.array(z.string()),
    ranges: z.array(z.string()),
    ports: z.array(z.int()),
  })
  .meta({ id: 'Egress', description: 'Destinations that the sandbox may contact.' });

export const OPEN_EGRESS: EgressBody = { mode: 'open', names: [], ranges: [], ports: [] };
