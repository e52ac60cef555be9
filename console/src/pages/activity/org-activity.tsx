import { activityText as text } from '../../text/activity.ts';
import { Page } from '../../ui/kit/index.ts';
import { Timeline } from './timeline.tsx';

export function OrgActivityPage() {
  return (
    <Page title={text.title}>
      <Timeline sandboxId={null} />
    </Page>
  );
}
