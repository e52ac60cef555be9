import { useQuery } from '@tanstack/react-query';
import { projectsQuery } from '../../queries/orgs.ts';
import { Untrusted } from '../../ui/kit/index.ts';
import { useOrgInView } from '../frame/content.tsx';

/** Name of a project of the org in view; its id until the projects are known. */
export function ProjectName({ id }: { id: string }) {
  const { data: projects = [] } = useQuery(projectsQuery(useOrgInView().orgId));
  return <Untrusted text={projects.find((one) => one.id === id)?.name ?? id} />;
}
