# A graph of the Topology Zoo's shape, with one node whose place is unknown.
graph [
  Network "Capitals &amp; more"
  directed 0
  node [
    id 0
    label "Oslo"
    Longitude 10.75
    Latitude 59.91
    graphics [ x 1 y 2 ]
  ]
  node [ id 1 label "Bern" Longitude 7.45 Latitude 46.95 ]
  node [ id 2 label "Wien" Longitude 16.37 Latitude 48.21 ]
  node [ id 3 label "Atlantis" ]
  node [ id 4 label "hub" kind "switch" ]
  edge [ source 0 target 1 LinkSpeedRaw 2500000000.0 ]
  edge [ source 1 target 2 length 1000 ]
  edge [ source 2 target 3 latency "5ms" ]
  edge [ source 3 target 4 ]
  edge [ source 4 target 0 length "12.5km" ]
]
