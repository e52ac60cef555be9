// Content of a page: the org that it is about, permissions in it, and loaded data.
import { useQuery } from '@tanstack/react-query';
import { createContext, useContext, type ComponentProps, type ReactNode } from 'react';
import { Link, Outlet, useParams } from 'react-router';
import type { api, Permission } from '@berth/sdk';
import { orgsQuery, useOrg } from '../../queries/orgs.ts';
import { mayIn, rolesThatMay } from '../../rules/access.ts';
import { PATHS } from '../../rules/paths.ts';
import { en } from '../../text/en.ts';
import { Failure, Loading, More, Notice } from '../../ui/kit/index.ts';

const OrgId = createContext('');

/** Content that is about an org. */
export const InOrg = OrgId.Provider;

/** Pages of the org in the address. Another org starts without the state of this one. */
export function OrgPages() {
  const { orgId = '' } = useParams();
  return (
    <InOrg key={orgId} value={orgId}>
      <Outlet />
    </InOrg>
  );
}

export interface OrgInView {
  orgId: string;
  /** undefined for an org of others, and until the orgs are known. */
  org: api.Org | undefined;
  /** Why the person may not; null if they may, or if the service decides. */
  refusalOf: (permission: Permission) => string | null;
}

export function useOrgInView(): OrgInView {
  const orgId = useContext(OrgId);
  const org = useOrg(orgId);
  const refusalOf = (permission: Permission): string | null =>
    org === undefined || mayIn(org, permission) ? null : en.actions.forbidden(permission, rolesThatMay(permission));
  return { orgId, org, refusalOf };
}

/** Content that needs a permission in the org in view, or why the person may not see it. */
export function Permitted({ permission, children }: { permission: Permission; children: ReactNode }) {
  const refusal = useOrgInView().refusalOf(permission);
  return (
    <Loaded query={useQuery(orgsQuery)}>{() => (refusal === null ? children : <Forbidden reason={refusal} />)}</Loaded>
  );
}

export function Forbidden({ reason }: { reason: string }) {
  return (
    <Notice title={en.states.forbiddenTitle} hint={reason}>
      <Link to={PATHS.home}>{en.states.back}</Link>
    </Notice>
  );
}

interface LoadedProps<T> {
  /** A list that is read in pages has a button for the next page. */
  query: { data: T | undefined; error: Error | null; refetch: () => Promise<unknown> } & (Pages | object);
  /** Placeholder rows while it loads. */
  rows?: number;
  /** In place of an empty list. */
  empty?: ReactNode;
  /** Loads the next page when the end of the list comes near. */
  inView?: boolean;
  children: (data: T) => ReactNode;
}

type Pages = ComponentProps<typeof More>['query'];

/** The data of a query; until then its loading or failed state. */
export function Loaded<T>({ query, rows = 8, empty, inView = false, children }: LoadedProps<T>) {
  const { data, error } = query;
  if (data !== undefined) {
    const isEmpty = empty !== undefined && Array.isArray(data) && data.length === 0;
    return (
      <>
        {isEmpty ? empty : children(data)}
        {'fetchNextPage' in query ? <More query={query} inView={inView} /> : null}
      </>
    );
  }
  if (error === null) return <Loading rows={rows} />;
  const up = <Link to={PATHS.home}>{en.states.back}</Link>;
  return <Failure error={error} retry={() => void query.refetch()} up={up} />;
}
