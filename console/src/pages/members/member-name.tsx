import { useQuery } from '@tanstack/react-query';
import { membersQuery } from '../../queries/members.ts';
import { nameOf } from '../../rules/members.ts';
import { membersText as text } from '../../text/members.ts';
import { Untrusted } from '../../ui/kit/index.ts';
import { useOrgInView } from '../frame/content.tsx';

/** Name of a member of the org in view; of a former one the id. @param id null: it is gone */
export function MemberName({ id }: { id: string | null }) {
  const { data: members = [] } = useQuery(membersQuery(useOrgInView().orgId));
  return id === null ? text.deleted : <Untrusted text={nameOf(members, id) ?? id} />;
}
