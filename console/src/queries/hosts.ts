// Hosts of the installation. The feed does not have them, so visible pages poll.
import { infiniteQueryOptions } from '@tanstack/react-query';
import { berth } from '../session/client.ts';
import { pagedQuery, whileShort } from './paged.ts';

const refetchInterval = whileShort(10_000);

export const hostsQuery = {
  ...pagedQuery(
    ['hosts'],
    (page, signal) => berth.hosts.list(page, { signal }),
    ({ hosts }) => hosts,
  ),
  refetchInterval,
};

/** A host, and its sandboxes. */
export const hostQuery = (hostId: string) =>
  infiniteQueryOptions({
    ...pagedQuery(
      ['hosts', hostId],
      (page, signal) => berth.hosts.get(hostId, page, { signal }),
      ({ sandboxes }) => sandboxes,
    ),
    refetchInterval,
    select: ({ pages }) => ({ host: pages[0]?.host, sandboxes: pages.flatMap(({ sandboxes }) => sandboxes) }),
  });
