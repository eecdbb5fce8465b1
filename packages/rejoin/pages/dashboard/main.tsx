import { createRoot } from 'react-dom/client'
import 'uplot/dist/uPlot.min.css'
import '../shared/theme.css'
import './dashboard.css'
import { Dashboard } from './dashboard.tsx'

createRoot(document.getElementById('root') as HTMLElement).render(<Dashboard />)
