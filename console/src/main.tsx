import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { RouterProvider } from 'react-router/dom';
import { queries } from './queries/client.ts';
import { router } from './routes.tsx';
import { session } from './session/client.ts';
import { Gate } from './session/gate.tsx';
import { watchInput } from './session/input.ts';
import { watchParts } from './session/update.ts';
import { watchZone } from './theme/zone.ts';
import './theme/tokens.css';
import './theme/base.css';

watchParts(import.meta.url);
watchInput();
watchZone();
const root = document.getElementById('root');
if (root === null) throw new Error('the page has no root element');
void session.refresh();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Gate>
        <RouterProvider router={router} />
      </Gate>
    </QueryClientProvider>
  </StrictMode>,
);
