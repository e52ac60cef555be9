import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { Timeline } from './timeline.tsx';

export function SandboxActivityPage() {
  return <Timeline sandboxId={useSandboxInView().sandbox.id} />;
}
