import { createRoot } from 'react-dom/client'
import '../shared/theme.css'
import './playground.css'
import { Playground } from './playground.tsx'
import { startSession } from './session.ts'

createRoot(document.getElementById('root') as HTMLElement).render(<Playground session={startSession()} />)
