// Description of the service, which changes when the service is updated: live updates have it read
// again after each interruption.
import { queryOptions } from '@tanstack/react-query';
import { berth } from '../session/client.ts';

export const serviceQuery = queryOptions({
  queryKey: ['service'],
  queryFn: ({ signal }) => berth.raw.getService({ signal }),
  staleTime: Infinity,
});
